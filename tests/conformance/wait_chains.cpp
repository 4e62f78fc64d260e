// The promise that the chain of who waits for whom is read as it is: a cycle comes back, others end.
#include "support/hands.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::string resource(int number) { return fmt::format("resource/{}", number); }

// `count` threads that each hold one resource and wait for the next one; the last waits for the first if `closed`.
class Ring {
 public:
  Ring(store::LockTable& table, int count, bool closed) {
    for (int i = 0; i < count; ++i) {
      // Two engines in each process: only the thread is the same.
      const auto thread = fmt::format("{:016x}", 100 + i);
      holders_.push_back(std::make_unique<Hand>(table, 1 + i, resource(i)));
      holders_.back()->acting("aaaaaaaaaaaaaaaa" + thread);
      REQUIRE(holders_.back()->barge());
      if (i + 1 == count && !closed) break;
      waiters_.push_back(std::make_unique<Hand>(table, 1001 + i, resource((i + 1) % count)));
      waiters_.back()->acting("bbbbbbbbbbbbbbbb" + thread);
    }
    for (std::size_t i = 0; i < waiters_.size(); ++i) {
      if (i % 2 == 0) waiters_[i]->add();
      else waiters_[i]->draw_ticket();
    }
  }
  ~Ring() {
    for (const auto& waiter : waiters_) waiter->remove();
    for (const auto& holder : holders_) holder->release();
  }
  Hand& waiter(std::size_t i) { return *waiters_.at(i); }
  Hand& holder(std::size_t i) { return *holders_.at(i); }

 private:
  std::vector<std::unique_ptr<Hand>> holders_, waiters_;
};

}  // namespace

TEST_CASE("a cycle comes back to where it began, named step by step") {
  for (const int count : {2, 5}) {
    CAPTURE(count);
    Database database;
    const auto table = database.table();
    Ring ring(*table, count, true);
    for (std::size_t start = 0; start < static_cast<std::size_t>(count); ++start) {
      const auto links = ring.waiter(start).chain();
      REQUIRE(links.size() == static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < links.size(); ++i) {
        const auto at = (start + i) % static_cast<std::size_t>(count),
                   next = (at + 1) % static_cast<std::size_t>(count);
        CHECK(links[i].name == resource(static_cast<int>(next)));
        CHECK(links[i].waiter == ring.waiter(at).owner());
        CHECK(links[i].waiter_label == "label");
        CHECK(links[i].ticket == (at % 2 == 0 ? 0 : 1));
        CHECK(links[i].since > 0);
        CHECK(links[i].holder == ring.holder(next).owner());
        CHECK(links[i].holder_actor == ring.holder(next).actor());
        CHECK(links[i].holder_label == "label");
        CHECK(links[i].token == ring.holder(next).token());
      }
      CHECK(links.back().holder_actor.substr(16) == ring.waiter(start).actor().substr(16));
      CHECK(ring.waiter(start).chain().size() == links.size());
    }
  }
}

TEST_CASE("a chain that is no cycle ends with who does not wait") {
  Database database;
  const auto table = database.table();
  Ring ring(*table, 4, false);
  CHECK(ring.waiter(0).chain().size() == 3);
  CHECK(ring.waiter(2).chain().size() == 1);
  // Whoever does not wait itself has no chain.
  CHECK(Hand(*table, 77, resource(0)).chain().empty());
}

TEST_CASE("only live leases and live waiters are links") {
  Database database;
  const auto table = database.table();
  Ring ring(*table, 3, true);
  REQUIRE(ring.waiter(0).chain().size() == 3);
  database.admin().run("UPDATE resource_lock_waiter SET expires_at = 1 WHERE owner = '" + ring.waiter(2).owner() + "'");
  CHECK(ring.waiter(0).chain().size() == 2);
  CHECK(ring.waiter(2).chain().empty());
  database.admin().expire(resource(1));
  CHECK(ring.waiter(0).chain().empty());
  CHECK(ring.waiter(1).chain().size() == 1);
}

TEST_CASE("who has given back a name that it shared keeps nobody waiting, although the name stays closed") {
  Database database;
  const auto table = database.table();
  auto engine = database.engine({.reentrance = Reentrance::none});
  auto gone = engine.try_lock("job", {.mode = Mode::shared, .at_least = 1h});
  REQUIRE(gone);
  Hand waiter(*table, 1);
  waiter.add();
  CHECK(waiter.chain().size() == 1);
  CHECK(gone->release() == Released::freed);
  CHECK(waiter.chain().empty());
  const auto seen = engine.waiters("job");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].holder_token == Token{});
  waiter.remove();
  database.admin().run("UPDATE resource_lock SET owner = NULL, mode = '' WHERE name = 'job'");
}

TEST_CASE("a thread that waits for several names counts for the last it came to") {
  Database database;
  const auto table = database.table();
  Ring ring(*table, 3, true);
  Hand more(*table, 500, resource(1));
  more.acting(ring.waiter(1).actor());
  more.add();
  database.admin().run("UPDATE resource_lock_waiter SET since = since + 1000000 WHERE owner = '" + more.owner() + "'");
  const auto links = ring.waiter(0).chain();
  REQUIRE(links.size() >= 2);
  CHECK(links[1].waiter == more.owner());
  CHECK(links[1].holder == ring.holder(1).owner());
  // It never comes back to the first, and each step is told once.
  CHECK(links.size() == 2);
  more.remove();
  CHECK(ring.waiter(0).chain().size() == 3);
}

TEST_CASE("a lock whose holder is unknown by actor ends the chain") {
  Database database;
  const auto table = database.table();
  Ring ring(*table, 2, true);
  database.admin().run("UPDATE resource_lock SET actor = '' WHERE name = '" + resource(1) + "'");
  database.admin().run("UPDATE resource_lock_waiter SET actor = '' WHERE owner = '" + ring.waiter(1).owner() + "'");
  CHECK(ring.waiter(0).chain().size() == 1);
}

TEST_CASE("readers of a name are in each other's way only where somebody in line between them wants it otherwise") {
  Database database;
  const auto table = database.table();
  const auto thread = [](int number) { return "aaaaaaaaaaaaaaaa" + fmt::format("{:016x}", number); };
  Hand inside(*table, 1, resource(0)), other(*table, 2, resource(1));
  REQUIRE(inside.reading().acting(thread(1)).barge());
  REQUIRE(other.acting(thread(2)).barge());
  Hand waits(*table, 3, resource(1)), reader(*table, 4, resource(0));
  waits.acting(thread(1)).add();
  reader.reading().acting(thread(2)).add();  // kept out for a moment, as by a transaction that has the row
  CHECK(reader.chain().empty());
  CHECK(waits.chain().size() == 1);
  Hand next(*table, 5, resource(0));
  next.reading().acting(thread(3)).draw_ticket();
  CHECK(reader.chain().empty());
  Hand writer(*table, 6, resource(0));
  writer.acting(thread(4)).draw_ticket();
  CHECK(reader.chain().size() == 2);
  CHECK(waits.chain().size() == 2);
  CHECK(writer.chain().size() == 3);
  writer.remove();
  CHECK(reader.chain().empty());
  writer.wanting(1, 2).draw_ticket();
  CHECK(reader.chain().size() == 2);
  for (auto* each : {&waits, &reader, &next, &writer}) each->remove();
  for (auto* each : {&inside, &other}) each->release();
}
