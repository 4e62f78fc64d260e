// Of many who want the same names at one moment one has all of them, and then the next; and whatever goes wrong with
// one of the names leaves none of the others held.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr int many = 10;

// The same names, from another one on for each thread.
std::vector<std::string> names_of(int thread) {
  std::vector<std::string> names{"a", "b", "c"};
  std::ranges::rotate(names, names.begin() + thread % 3);
  return names;
}

}  // namespace

TEST_CASE("of ten that want the same names at one moment and wait for a while, one has all of them, in each round") {
  Database database;
  std::array<Engine, 2> engines{database.engine(), database.engine()};
  const auto wait = 500ms * slowness();
  for (const auto fairness : {Fairness::barging, Fairness::fifo}) {
    Token last{};
    for (int round = 0; round < 2; ++round) {
      std::array<std::optional<LockSet>, many> sets;
      std::array<Refusal, many> refusals;
      std::atomic<int> early = 0;
      in_parallel(many, [&](int thread) {
        const Stopwatch time;
        auto& set = sets.at(thread);
        set = answered([&] {
          return engines.at(thread % 2)
              .try_lock_all_for(names_of(thread), wait, {.fairness = fairness}, {}, &refusals.at(thread));
        });
        if (!set && time.elapsed() < wait) ++early;
      });
      CHECK(early == 0);
      CHECK(std::ranges::count_if(sets, [](const auto& set) { return set.has_value(); }) == 1);
      CHECK(database.admin().held() == 3);
      for (std::size_t i = 0; i < many; ++i) {
        auto& set = sets.at(i);
        if (!set) {
          CHECK(refusals.at(i).why == Refused::timed_out);
          continue;
        }
        CHECK(set->valid());
        for (const auto& lock : *set) CHECK(database.admin().owner(lock.name()) == lock.owner());
        CHECK((*set)["a"].token() > last);
        last = (*set)["a"].token();
        CHECK(set->release() == Released::freed);
      }
      CHECK(database.admin().held() == 0);
    }
  }
}

TEST_CASE("of ten that wait for the same names one has all of them at a time, and when it releases them, the next") {
  Database database;
  std::array<Engine, 2> engines{database.engine(), database.engine()};
  std::mutex mutex;
  std::deque<LockSet> granted;  // guarded by mutex
  std::atomic<int> grants = 0, refused = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < many; ++thread)
    threads.emplace_back([&, thread] {
      std::optional<LockSet> set;
      try {
        set = engines.at(thread % 2).try_lock_all_for(names_of(thread), 4min);
      } catch (const Error& error) { MESSAGE(error.what()); }
      if (!set) {
        ++refused;
        return;
      }
      const std::lock_guard guard(mutex);
      granted.push_back(std::move(*set));
      ++grants;
    });
  Token last{};
  for (int turn = 1; turn <= many; ++turn) {
    REQUIRE(eventually([&] { return grants + refused >= turn; }, 2 * far_longer()));
    REQUIRE(refused == 0);
    std::optional<LockSet> set;
    {
      const std::lock_guard guard(mutex);
      CHECK(granted.size() == 1);
      set = std::move(granted.front());
      granted.pop_front();
    }
    for (const auto& lock : *set) {
      CHECK(database.admin().owner(lock.name()) == lock.owner());
      CHECK(database.admin().token(lock.name()) >= lock.token());
    }
    CHECK((*set)["b"].token() > last);
    last = (*set)["b"].token();
    CHECK(set->valid());
    CHECK(grants == turn);  // nobody has come in beside it
    CHECK(set->release() == Released::freed);
  }
  threads.clear();
  CHECK(database.admin().held() == 0);
}

TEST_CASE("whatever is wrong with one of several names, the others are free for everybody after that") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  engine.lock_all({"a", "b", "c"}).release();
  struct Trouble {
    const char* name;
    std::function<void()> begin, end;
  };
  std::optional<Lock> theirs;
  auto& admin = database.admin();
  const Trouble troubles[] = {
      {"held alone", [&] { theirs = other.lock("b"); }, [&] { theirs.reset(); }},
      {"held by a reader", [&] { theirs = other.lock("b", {.mode = Mode::shared}); }, [&] { theirs.reset(); }},
      {"held as a permit", [&] { theirs = other.lock("b", {.mode = Mode::permits, .limit = 2}); },
       [&] { theirs.reset(); }},
      {"closed", [&] { other.lock("b", {.at_least = 1h}).release(); },
       [&] { admin.run("UPDATE resource_lock SET reopens_at = 0 WHERE name = 'b'"); }},
      // The next token is none.
      {"used up", [&] { admin.run("UPDATE resource_lock SET token = 9223372036854775807 WHERE name = 'b'"); },
       [&] { admin.run("UPDATE resource_lock SET token = 100 WHERE name = 'b'"); }},
  };
  for (const auto& trouble : troubles) {
    for (const bool waits : {false, true}) {
      INFO(trouble.name << ", waits: " << waits);
      trouble.begin();
      std::optional<LockSet> set;
      try {
        set = waits ? engine.try_lock_all_for({"c", "b", "a"}, 50ms) : engine.try_lock_all({"c", "b", "a"});
      } catch (const Error&) {}
      CHECK_FALSE(set);
      CHECK(eventually([&] { return admin.owner("a").empty() && admin.owner("c").empty(); }));
      CHECK(other.try_lock_all({"a", "c"}).has_value());
      trouble.end();
      CHECK(admin.held() == 0);
      CHECK(engine.try_lock_all({"a", "b", "c"}).has_value());
    }
  }
}

TEST_CASE("where another transaction has locked the row of one of several names, none of the others stays held") {
  Database database;
  auto engine = database.engine({.timeouts = {.request = time_in_vain()}}), other = database.engine();
  engine.lock_all({"a", "b", "c"}).release();
  database.admin().block("b");
  CHECK(granted_nothing([&] { return engine.try_lock_all({"a", "b", "c"}).has_value(); }));
  database.admin().unblock();
  CHECK(eventually([&] { return database.admin().held() == 0; }));
  CHECK(other.try_lock_all({"a", "b", "c"}).has_value());
}
