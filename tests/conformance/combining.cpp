// The promise that requests which travel together are answered as if each had gone alone.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <sstream>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr int threads = 12;

std::string job(int i) { return "job " + std::to_string(i); }

// Of many lengths: none, then longer and longer ones.
std::string label(int i) { return std::string(static_cast<std::size_t>(i), 'l'); }
std::string metadata(int i) { return std::string(static_cast<std::size_t>(i * 300), 'm'); }

}  // namespace

TEST_CASE("many threads on one connection are granted a lock each, under its own token, and free it") {
  Database database;
  auto engine = database.engine({.connections = 1});
  std::vector<std::optional<Lock>> locks(threads);
  for (int round = 1; round <= 3; ++round) {
    in_parallel(threads, [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      locks[at] = engine.try_lock(job(i), {.renew = false, .label = label(i), .metadata = metadata(i)});
    });
    for (int i = 0; i < threads; ++i) {
      const auto& lock = locks[static_cast<std::size_t>(i)];
      REQUIRE(lock);
      CHECK(lock->valid());
      CHECK(number(lock->token()) == round);
      CHECK(database.admin().owner(job(i)) == lock->owner());
      const auto holder = engine.inspect(job(i));
      REQUIRE(holder);
      CHECK(holder->token == lock->token());
      CHECK(holder->label == label(i));
      CHECK(holder->metadata == metadata(i));
      CHECK(holder->lease == 30s);
    }
    in_parallel(threads, [&](int i) { CHECK(locks[static_cast<std::size_t>(i)]->release() == Released::freed); });
    CHECK(database.admin().held() == 0);
  }
}

TEST_CASE("threads of two engines that fight for a few names never hold one together, and tokens only grow") {
  Database database;
  std::array engines{database.engine({.connections = 1}), database.engine({.connections = 1})};
  constexpr std::size_t names = 4;
  struct Name {
    std::atomic<int> inside{0};
    std::atomic<std::int64_t> token{0};
    std::atomic<int> grants{0};
  };
  std::array<Name, names> known{};
  in_parallel(threads, [&](int i) {
    auto& engine = engines[static_cast<std::size_t>(i % 2)];
    for (std::size_t attempt = 0; attempt < 10; ++attempt) {
      const auto at = (static_cast<std::size_t>(i) + attempt) % names;
      auto& name = known[at];
      auto lock = engine.try_lock(job(static_cast<int>(at)), {.renew = false, .reentrance = Reentrance::none});
      if (!lock) continue;
      CHECK(name.inside.fetch_add(1) == 0);
      CHECK(name.token.exchange(number(lock->token())) < number(lock->token()));
      ++name.grants;
      --name.inside;
      CHECK(lock->release() == Released::freed);
    }
  });
  for (auto& name : known) CHECK(name.grants > 0);
}

TEST_CASE("one bad request fails alone") {
  Database database;
  const auto table = open_table(database.url(), 1);
  const std::string too_long(5000, 'x');
  std::atomic<int> granted{0}, refused{0};
  in_parallel(threads, [&](int i) {
    const Name name(job(i));
    for (int round = 1; round <= 3; ++round) {
      const auto owner = identity(round * threads + i);  // who has released is not granted it again
      const store::AcquireRequest ask{name,  owner, "node", "label",
                                      owner, 1h,    {},     i == 0 ? std::string_view{too_long} : "meta"};
      try {
        const auto answer = patiently([&] { return table->acquire(ask, soon()); });
        REQUIRE(answer.token);
        ++granted;
        const store::LeaseKey claim{name.text(), owner, *answer.token};
        CHECK(patiently([&]() -> bool { return table->release(claim, soon()); }));
      } catch (const Failure& failure) {
        CHECK(failure.cause() == Cause::rejected);
        ++refused;
      }
    }
  });
  CHECK(granted == 3 * (threads - 1));
  CHECK(refused == 3);
}

TEST_CASE("where one bad request ends a batch, nobody is told that nothing was done who was granted something by it") {
  Database database;
  const auto table = open_table(database.url(), 1);
  const std::string too_long(5000, 'x');
  const Name old(job(1)), absent(job(2));
  const auto first = identity(1), second = identity(2), other = identity(9);
  const store::AcquireRequest ask{old, other, "node", "label", other, 1h, {}, "meta"};
  const auto before = table->acquire(ask, soon()).token;
  REQUIRE(before);
  REQUIRE(table->release({old.text(), ask.owner, *before}, soon()));
  const store::AcquireRequest asks[] = {{old, first, "node", "label", first, 1h, {}, "meta"},
                                        {absent, second, "node", "label", second, 1h, {}, too_long}};
  try {
    for (const auto& told : table->acquire_together(asks, soon())) CHECK_FALSE(told);  // nothing travels together
  } catch (const Failure& failure) {
    CHECK(failure.cause() == Cause::rejected);
    CHECK((failure.may_have_run() || database.admin().owner(old.text()).empty()));
  }
  const auto granted = table->acquire(asks[0], soon()).token;
  REQUIRE(granted);
  CHECK(table->release({old.text(), first, *granted}, soon()));
}

TEST_CASE(
    "an ask that is repeated keeps its token and the beginning of its grant, and its at-least time stays closed") {
  Database database;
  const auto table = open_table(database.url(), 1);
  std::vector<Token> first(threads);
  std::vector<Duration> begun(threads);
  for (int round = 0; round < 3; ++round) {
    in_parallel(threads, [&](int i) {
      const Name name(job(i));
      const auto owner = identity(i);
      const store::AcquireRequest ask{name, owner, "node", "label", owner, 1h, 30min, "meta"};
      const auto answer = patiently([&] { return table->acquire(ask, soon()); });
      REQUIRE(answer.token);
      auto& known = first[static_cast<std::size_t>(i)];
      if (round == 0) known = *answer.token;
      CHECK(known == *answer.token);
    });
    for (int i = 0; i < threads; ++i) {
      auto& known = begun[static_cast<std::size_t>(i)];
      if (round == 0) known = database.admin().acquired_at(job(i));
      CHECK(database.admin().acquired_at(job(i)) == known);
      CHECK(database.admin().reopens_at(job(i)) == known + 30min);
    }
  }
  in_parallel(threads, [&](int i) {
    const auto name = job(i), owner = identity(i), other = identity(1000 + i);
    const store::LeaseKey claim{name, owner, first[static_cast<std::size_t>(i)]};
    const store::LeaseKey stranger{name, other, first[static_cast<std::size_t>(i)]};
    CHECK_FALSE(patiently([&]() -> bool { return table->release(stranger, soon()); }));
    CHECK(patiently([&]() -> bool { return table->release(claim, soon()); }));
  });
  in_parallel(threads, [&](int i) {
    const Name name(job(i));
    const auto owner = identity(100 + i);
    const store::AcquireRequest ask{name, owner, "node", "label", owner, 1h, {}, "meta"};
    CHECK_FALSE(patiently([&] { return table->acquire(ask, soon()); }).token);
  });
}

TEST_CASE("an expired lease is taken over, and a row begins above the floor, also among many") {
  Database database;
  const auto table = open_table(database.url(), 1);
  const auto take_all = [&](int series) {
    in_parallel(threads, [&](int i) {
      const Name name(job(i));
      const auto owner = identity(series * 100 + i);
      const store::AcquireRequest ask{name, owner, "node", "label", owner, 1h, {}, "meta"};
      CHECK(patiently([&] { return table->acquire(ask, soon()); }).token);
    });
  };
  take_all(1);
  for (int i = 0; i < threads; ++i) database.admin().expire(job(i));
  database.admin().run("UPDATE resource_lock SET token = 500 WHERE name = ''");
  take_all(2);
  for (int i = 0; i < threads; ++i) {
    CHECK(number(database.admin().token(job(i))) == 501);
    CHECK(database.admin().owner(job(i)) == identity(200 + i));
  }
  database.admin().run("DELETE FROM resource_lock WHERE name <> ''");
  take_all(3);
  for (int i = 0; i < threads; ++i) CHECK(number(database.admin().token(job(i))) == 501);
  database.admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''");
}

TEST_CASE("who asks without a ticket does not pass those who have one, also among many") {
  Database database;
  const auto table = open_table(database.url(), 1);
  std::vector<Hand> queued;
  for (int i = 1; i < threads; ++i) queued.emplace_back(*table, i, job(i)).draw_ticket();
  // Who comes first goes alone: each round it is somebody else, and nobody waits for the first name.
  for (int round = 1; round <= 5; ++round)
    in_parallel(threads, [&](int i) {
      const Name name(job(i));
      const auto owner = identity(100 * round + i);
      const store::AcquireRequest ask{name, owner, "node", "label", owner, 1h, {}, "meta"};
      const auto answer = patiently([&] { return table->acquire(ask, soon()); });
      CHECK(answer.token.has_value() == (i == 0));
      if (!answer.token) return;
      const store::LeaseKey claim{name.text(), owner, *answer.token};
      CHECK(patiently([&]() -> bool { return table->release(claim, soon()); }));
    });
  for (auto& hand : queued) {
    CHECK(hand.acquire());
    CHECK(hand.release());
  }
}

TEST_CASE("those who travel together are written in the order of names") {
  Database database;
  const auto batches = database.test_database().written_together("resource_lock", "name");
  if (batches.empty()) return;  // nothing here tells in what order it was written
  const auto table = open_table(database.url(), 1);
  for (int round = 0; round < 5; ++round)  // names that were not there before, and stay
    in_parallel(threads, [&](int i) {
      const Name name(fmt::format("job {} {:02}", round, i));
      const auto owner = identity(100 * round + i);
      const store::AcquireRequest ask{name, owner, "node", "label", owner, 1h, {}, "meta"};
      CHECK(patiently([&] { return table->acquire(ask, soon()); }).token);
    });
  std::size_t most = 0;
  for (int batch = 1;; ++batch) {
    std::istringstream text(database.admin().text(batches + " OFFSET " + std::to_string(batch - 1)));
    std::vector<std::string> names;
    for (std::string name; std::getline(text, name, ',');) names.push_back(name);
    if (names.empty()) break;
    CHECK_MESSAGE(std::ranges::is_sorted(names), text.str());
    most = std::max(most, names.size());
  }
  CHECK(most > 0);
  MESSAGE("at most " << most << " in one statement");
  database.admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''");
}
