// What the reaper makes of answers that are lost, and of a database that is away.
#include "engine/reaper.hpp"
#include "engine/breathing.hpp"
#include "engine/fake_lock_table.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using dlock::Cause;
using dlock::Event;
using dlock::Token;
using dlock::engine::Reaper;
using dlock::test::FakeLockTable;

namespace {

struct Told {
  std::string name, text;
  Event::Kind kind{};
};

// A reaper on a table in memory, on which the lease "job" has been abandoned.
struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  std::mutex mutex;
  std::vector<Told> told;  // guarded by mutex
  std::shared_ptr<dlock::engine::EventQueue> events =
      std::make_shared<dlock::engine::EventQueue>([this](const Event& event) {
        const std::lock_guard guard(mutex);
        told.push_back({std::string(event.name), std::string(event.text), event.kind});
      });
  std::optional<Reaper> reaper;

  explicit Bench(dlock::Duration every = {}, dlock::Duration patience = 1min) {
    abandon();
    reaper.emplace(table, events, dlock::engine::ReaperOptions{every, 1h, 1h, patience, "test"});
  }
  ~Bench() { end(); }

  void abandon(const char* text = "job") {
    const dlock::Name name(text);
    const dlock::store::AcquireRequest ask{name, "owner", "", "label", "", dlock::Duration{1}, {}, ""};
    table->acquire(ask, dlock::Deadline::max());
    const auto over = dlock::later(dlock::BootClock::now(), dlock::Duration{1});
    while (dlock::BootClock::now() <= over) std::this_thread::yield();
  }

  // Who shared a name with others and did not let go.
  static dlock::store::DeadHolder dead(const std::string& name, const std::string& owner) {
    return {{name, "replica-0", "label", Token{1}, {}, 0}, owner, true, dlock::Duration{1}};
  }

  // The name is granted again, and released.
  void use() {
    const dlock::Name name("job");
    const dlock::store::AcquireRequest ask{name, "another", "", "", "", 1h, {}, ""};
    const auto token = table->acquire(ask, dlock::Deadline::max()).token;
    const dlock::store::LeaseKey key{name.text(), "another", token.value_or(Token{})};
    table->release(key, dlock::Deadline::max());
  }

  bool tells(Event::Kind kind, long count) {
    return dlock::test::eventually([&] {
      const std::lock_guard guard(mutex);
      return std::count_if(told.begin(), told.end(), [&](const Told& one) { return one.kind == kind; }) >= count;
    });
  }

  // Ends the reaper and delivers what it has told.
  std::vector<Told> end() {
    reaper.reset();
    events.reset();
    return told;
  }

  static std::vector<std::string> abandoned(const std::vector<Told>& all) {
    std::vector<std::string> texts;
    for (const auto& one : all)
      if (one.kind == Event::Kind::abandoned) texts.push_back(one.text);
    return texts;
  }
};

}  // namespace

TEST_CASE("a settled lease is told once, with who held it") {
  Bench bench;
  CHECK(bench.reaper->round(10).abandoned == 1);
  CHECK(bench.reaper->round(10).abandoned == 0);
  const auto texts = Bench::abandoned(bench.end());
  REQUIRE(texts.size() == 1);
  CHECK(texts.front().starts_with("held by label"));
}

TEST_CASE("a settling whose answer is lost is told once all the same") {
  Bench bench;
  bench.table->unanswered_settles = 1;
  CHECK(bench.reaper->round(10).abandoned == 1);
  CHECK(Bench::abandoned(bench.end()).size() == 1);
}

TEST_CASE("a settling that nobody answers is told when the database is back, once") {
  Bench bench({}, 200ms * dlock::test::slowness());
  bench.table->unanswered_settles = 1;
  bench.table->away_after_settles = true;
  CHECK_THROWS_AS(bench.reaper->round(10), dlock::Failure);
  CHECK_THROWS_AS(bench.reaper->round(10), dlock::Failure);
  bench.table->away = false;
  CHECK(bench.reaper->round(10).abandoned == 1);
  CHECK(bench.reaper->round(10).abandoned == 0);
  CHECK(Bench::abandoned(bench.end()).size() == 1);
}

TEST_CASE("a settling without an answer is told with the doubt in words once the name was used again") {
  Bench bench({}, 200ms * dlock::test::slowness());
  bench.table->unanswered_settles = 1;
  bench.table->away_after_settles = true;
  CHECK_THROWS_AS(bench.reaper->round(10), dlock::Failure);
  bench.table->away = false;
  bench.use();
  CHECK(bench.reaper->round(10).abandoned == 1);
  const auto texts = Bench::abandoned(bench.end());
  REQUIRE(texts.size() == 1);
  CHECK(texts.front().find("the answer was lost") != std::string::npos);
}

TEST_CASE("a settling whose answer never came is told at the latest when the engine ends") {
  Bench bench({}, 200ms * dlock::test::slowness());
  bench.table->unanswered_settles = 1;
  bench.table->away_after_settles = true;
  CHECK_THROWS_AS(bench.reaper->round(10), dlock::Failure);
  const auto texts = Bench::abandoned(bench.end());
  REQUIRE(texts.size() == 1);
  CHECK(texts.front().find("the answer was lost") != std::string::npos);
}

TEST_CASE("a settling without an answer whose row is locked is told once, when its row is free") {
  Bench bench;
  bench.table->unanswered_settles = 1;
  bench.table->locked_settles = 3;  // asked again at once, looked for, and once more in the next round
  CHECK(bench.reaper->round(10).abandoned == 0);
  CHECK(bench.table->locked_settles == 1);
  CHECK(bench.reaper->round(10).abandoned == 0);
  CHECK(bench.table->locked_settles == 0);
  CHECK(bench.reaper->round(10).abandoned == 1);
  CHECK(bench.reaper->round(10).abandoned == 0);
  CHECK(Bench::abandoned(bench.end()).size() == 1);
}

TEST_CASE("a settling that never came, of a lease that another owner took over, is not told") {
  Bench bench({}, 200ms * dlock::test::slowness());
  bench.table->lost_settles = 1;
  bench.table->away_after_settles = true;
  CHECK_THROWS_AS(bench.reaper->round(10), dlock::Failure);
  bench.table->away = false;
  bench.use();
  CHECK(bench.reaper->round(10).abandoned == 0);
  CHECK(Bench::abandoned(bench.end()).empty());
}

TEST_CASE("who died among several is told once, whatever becomes of the removal's answer") {
  using Forgets = FakeLockTable::Forgets;
  struct Case {
    std::vector<Forgets> forgets;
    bool doubtful, in_next_round;
  };
  for (const auto& one : std::vector<Case>{{{}, false, false},
                                           {{Forgets::unanswered}, true, false},
                                           {{Forgets::never_came}, false, false},
                                           {{Forgets::locked}, false, true},
                                           {{Forgets::never_came, Forgets::locked}, false, true},
                                           {{Forgets::unanswered, Forgets::locked}, true, true}}) {
    Bench bench;
    CHECK(bench.reaper->round(10).abandoned == 1);  // "job"
    bench.table->dead = {bench.dead("a", "1")};
    bench.table->forgets = one.forgets;
    CHECK(bench.reaper->round(10).abandoned == (one.in_next_round ? 0 : 1));
    CHECK(bench.reaper->round(10).abandoned == (one.in_next_round ? 1 : 0));
    CHECK(bench.table->dead.empty());
    CHECK(bench.reaper->round(10).abandoned == 0);
    const auto texts = Bench::abandoned(bench.end());
    REQUIRE(texts.size() == 2);
    CHECK((texts.back().find("the answer was lost") != std::string::npos) == one.doubtful);
  }
}

TEST_CASE("whose removal was in doubt, and who goes on, is not told of, not even at the end") {
  Bench bench;
  CHECK(bench.reaper->round(10).abandoned == 1);  // "job"
  const auto dead = bench.dead("a", "1");
  bench.table->dead = {dead};
  bench.table->forgets = {FakeLockTable::Forgets::never_came, FakeLockTable::Forgets::locked};
  CHECK(bench.reaper->round(10).abandoned == 0);
  bench.table->dead.front().expires_at = 1h;
  bench.table->dead.front().abandoned = false;
  bench.table->alive = true;
  CHECK(bench.reaper->round(10).abandoned == 0);
  CHECK(bench.table->dead.size() == 1);
  CHECK(Bench::abandoned(bench.end()).size() == 1);
}

TEST_CASE("those who shared a name are told of with their lock, before another one is settled") {
  Bench bench;
  bench.abandon("other");
  bench.table->shared_name = "job";
  bench.table->dead = {bench.dead("job", "1"), bench.dead("job", "2"), bench.dead("job/further", "1")};
  std::vector<std::string> left_before;
  bench.table->before_settling = [&](std::string_view name) {
    left_before.push_back(fmt::format("{}:{}", name, bench.table->dead.size()));
  };
  std::vector<std::string> expected{"job:3", "other:1"};
  SUBCASE("all of them") { CHECK(bench.reaper->round(10).abandoned == 4); }
  SUBCASE("no more than asked for") {
    CHECK(bench.reaper->round(1).abandoned == 1);
    CHECK(bench.table->dead.size() == 2);
    CHECK(bench.reaper->round(10).abandoned == 3);
    expected.back() = "other:2";
  }
  CHECK(left_before == expected);
  CHECK(bench.table->dead.empty());
}

TEST_CASE("those who shared a name are told of with their lock, though nobody said that it is settled") {
  Bench bench;
  bench.abandon("other");
  bench.table->shared_name = "job";
  bench.table->dead = {bench.dead("job", "1")};
  std::vector<std::size_t> left_before;
  bench.table->before_settling = [&](std::string_view) { left_before.push_back(bench.table->dead.size()); };
  SUBCASE("at once") {
    bench.table->unanswered_settles = 1;
    CHECK(bench.reaper->round(10).abandoned == 2);
  }
  SUBCASE("in the next round, before any other") {
    bench.table->lost_settles = 1;
    bench.table->locked_settles = 2;
    CHECK(bench.reaper->round(1).abandoned == 1);  // "other", and no more
    CHECK(bench.table->dead.size() == 1);
    left_before.clear();
    bench.abandon("other");
    CHECK(bench.reaper->round(10).abandoned == 2);
  }
  REQUIRE(left_before.size() >= 2);
  CHECK(left_before.back() == 0);
}

TEST_CASE("locks of several who had all let go count towards what a round may settle") {
  Bench bench;
  bench.abandon("other");
  bench.table->shared_name = "job";
  std::size_t settled = 0;
  bench.table->before_settling = [&](std::string_view) { ++settled; };
  CHECK(bench.reaper->round(1).abandoned == 0);
  CHECK(settled == 1);
  CHECK(bench.reaper->round(1).abandoned == 1);
}

TEST_CASE("of any number of dead each is found, page after page, and no more are told of than asked for") {
  Bench bench;
  CHECK(bench.reaper->round(10).abandoned == 1);  // "job"
  for (int i = 0; i < 2500; ++i) {
    bench.table->dead.push_back(bench.dead("a", std::to_string(10000 + i)));
    bench.table->dead.back().abandoned = i >= 2000;
  }
  CHECK(bench.reaper->round(300).abandoned == 300);
  CHECK(bench.table->dead.size() == 200);
  CHECK(bench.reaper->round(300).abandoned == 200);
  CHECK(bench.table->dead.empty());
}

TEST_CASE("dead that a pattern does not match hide none that it does") {
  Bench bench;
  for (int i = 0; i < 1500; ++i) bench.table->dead.push_back(bench.dead("job/" + std::to_string(10000 + i), "1"));
  bench.table->dead.push_back(bench.dead("job/x", "1"));
  dlock::Reaping reaping{.glob = "job/?"};
  reaping.dry_run = true;
  CHECK(bench.reaper->pass(reaping, {}).abandoned == 1);
  CHECK(bench.table->dead.size() == 1501);
  reaping.dry_run = false;
  CHECK(bench.reaper->pass(reaping, {}).abandoned == 1);
  CHECK(bench.table->dead.size() == 1500);
}

TEST_CASE("where another reaper is at work nothing is done") {
  Bench bench;
  bench.table->reaped_elsewhere = true;
  CHECK(bench.reaper->round(10).elsewhere);
  CHECK(bench.table->owner_of("job") == "owner");
  bench.table->reaped_elsewhere = false;
  CHECK_FALSE(bench.reaper->round(10).elsewhere);
}

TEST_CASE("a reaper that works by itself lives through a database that is away, says so, and goes on") {
  Bench bench(1ms, 20ms);
  CHECK(bench.tells(Event::Kind::abandoned, 1));
  bench.table->away = true;
  CHECK(bench.tells(Event::Kind::retried, 3));
  bench.table->away = false;
  bench.abandon();
  CHECK(bench.tells(Event::Kind::abandoned, 2));
}

TEST_CASE("a batch is as large as it may be where that is quick, and small where it takes long") {
  const std::stop_token never;
  dlock::engine::BatchSize size({3000, 0, 250});
  CHECK(size.rows() == 250);
  // A thread that is held up in between makes a batch that took long, and the next ones begin anew.
  for (int batch = 0; size.rows() < 3000 && batch < 1000; ++batch) {
    const auto before = size.rows();
    CHECK_FALSE(size.breathe(dlock::BootClock::now(), never));
    CHECK(size.rows() <= 2 * before);
  }
  CHECK(size.rows() == 3000);
  CHECK_FALSE(size.breathe(dlock::BootClock::now() - 100ms, never));
  CHECK(size.rows() <= 750);
  CHECK(size.rows() >= 250);
  CHECK_FALSE(size.breathe(dlock::BootClock::now() - 60s, never));
  CHECK(size.rows() == 250);

  dlock::engine::BatchSize fixed({150, 0});
  CHECK_FALSE(fixed.breathe(dlock::BootClock::now() - 60s, never));
  CHECK(fixed.rows() == 150);
  CHECK(dlock::engine::BatchSize(dlock::RemovalPace{3000, 0, 250}.at_most(10)).rows() == 10);
}
