// The promise that several names are taken all together or not at all, in whatever order they are given, by however
// many who want some of the same; and that what is held so is one: told, fenced and released as one.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

bool waits_for(const Engine& engine, const std::string& name) {
  return eventually([&] {
    const auto waiting = engine.stats().waiting;
    const auto found = waiting.find(name);
    return found != waiting.end() && found->second > 0;
  });
}

std::vector<std::string> names_of(const LockSet& set) {
  std::vector<std::string> names;
  for (const auto& lock : set) names.push_back(lock.name());
  return names;
}

// Nobody but a release wakes who waits.
EngineOptions only_woken() { return {.polling = {.first = 1h, .longest = 1h}}; }

}  // namespace

TEST_CASE("several names are granted all together, or none of them, and a refusal names the one in the way") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  std::optional<Lock> theirs = other.lock("b");
  Refusal refusal;
  CHECK(eventually([&] {
    return !engine.try_lock_all({"c", "b", "a"}, {}, &refusal) && !refusal.holder.owner.empty();
  }));
  CHECK(refusal.why == Refused::busy);
  CHECK(refusal.holder.name == "b");
  CHECK(refusal.holder.owner == theirs->owner());
  CHECK(database.admin().held() == 1);
  CHECK_FALSE(database.admin().exists("a"));
  theirs.reset();
  auto set = engine.try_lock_all({"c", "b", "a"}, {}, &refusal);
  REQUIRE(set);
  CHECK(set->valid());
  CHECK(set->size() == 3);
  CHECK(set->remaining() > Duration{});
  CHECK(number((*set)["b"].token()) == 2);
  CHECK(database.admin().owner("a") == (*set)["a"].owner());
  CHECK_FALSE(other.try_lock("a"));
  CHECK_FALSE(other.try_lock_all({"x", "c"}));
  CHECK(set->release() == Released::freed);
  CHECK(set->release() == Released::freed);
  CHECK_FALSE(set->valid());
  CHECK(thrown_by([&] { set->check(); }).fault == Fault::lost);
  CHECK(thrown_by([&] { set->extend(1min); }).fault == Fault::lost);
  CHECK(database.admin().held() == 0);
}

TEST_CASE(
    "the order of the names does not matter, nor that one is given twice: a set has them in the order of their bytes") {
  Database database;
  auto engine = database.engine();
  const auto set = engine.lock_all({"z", "\xc3\xa4", "Z", "a/1", "z", "a", "a'; --"});
  CHECK(names_of(set) == std::vector<std::string>{"Z", "a", "a'; --", "a/1", "z", "\xc3\xa4"});
  CHECK(set.contains("z"));
  CHECK_FALSE(set.contains("y"));
  CHECK(set["\xc3\xa4"].name() == "\xc3\xa4");
  CHECK(thrown_by([&] { static_cast<void>(set["y"]); }).fault == Fault::misuse);
}

TEST_CASE("no name, and what is no name, is misuse before anything is asked for") {
  Database database;
  auto engine = database.engine();
  CHECK(thrown_by([&] { static_cast<void>(engine.try_lock_all({})); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(engine.lock_all({"a", ""})); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(engine.lock_all({"a", "\xff"})); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(engine.lock_all({"a", std::string("b\0c", 3)})); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(engine.try_lock_all({"a", "b"}, {.lease = 0s})); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(engine.try_lock_all_for({"a", "b"}, -1s)); }).fault == Fault::misuse);
  CHECK_FALSE(database.admin().exists("a"));
}

TEST_CASE("one name is a set as well, and so are more than go in one statement") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  CHECK(engine.lock_all({"alone"}).size() == 1);
  std::vector<std::string> many;
  for (int i = 0; i < 150; ++i) many.push_back("name/" + std::to_string(i));
  std::ranges::reverse(many);
  {
    const auto set = engine.lock_all(many);
    CHECK(set.size() == many.size());
    CHECK(set.valid());
    CHECK(database.admin().held() == 150);
  }
  CHECK(database.admin().held() == 0);
  const auto theirs = other.lock("name/99");  // of the last ones in the order of bytes
  CHECK_FALSE(engine.try_lock_all(many));
  CHECK(database.admin().held() == 1);
}

TEST_CASE(
    "sets that overlap, wanted by many threads of two engines, have one holder a name, and nobody waits for ever") {
  Database database;
  const std::array<std::string, 5> all{"a", "b", "c", "d", "e"};
  std::array<Engine, 2> engines{database.engine(), database.engine()};
  std::array<std::atomic<int>, 5> inside{};
  std::array<std::atomic<std::int64_t>, 5> last{};
  std::atomic<int> wrong = 0, missed = 0, granted = 0;
  in_parallel(8, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (int turn = 0; turn < 6; ++turn) {
      auto names = all;
      std::ranges::shuffle(names, random);
      const std::vector<std::string> some(names.begin(), names.begin() + 2 + turn % 3);
      const auto set = engines.at(thread % 2).try_lock_all_for(some, far_longer());
      if (!set) {
        ++missed;
        continue;
      }
      ++granted;
      for (const auto& lock : *set) {
        const auto i = static_cast<std::size_t>(lock.name().front() - 'a');
        if (inside.at(i)++ != 0 || last.at(i).exchange(number(lock.token())) >= number(lock.token())) ++wrong;
      }
      std::this_thread::yield();
      for (const auto& lock : *set) --inside.at(static_cast<std::size_t>(lock.name().front() - 'a'));
    }
  });
  CHECK(wrong == 0);
  CHECK(missed == 0);
  CHECK(granted == 48);
}

TEST_CASE(
    "two who want the same two names, each beginning at another end, and who want one of them alone, all come "
    "through") {
  Database database;
  std::array<Engine, 2> engines{database.engine(), database.engine()};
  std::atomic<int> granted = 0;
  in_parallel(6, [&](int thread) {
    auto& engine = engines.at(thread % 2);
    for (int turn = 0; turn < 5; ++turn) {
      if (thread < 2) granted += engine.try_lock_all_for({"x", "y"}, far_longer()) ? 1 : 0;
      else if (thread < 4) granted += engine.try_lock_all_for({"y", "x"}, far_longer()) ? 1 : 0;
      else granted += engine.try_lock_for(thread == 4 ? "x" : "y", far_longer()) ? 1 : 0;
    }
  });
  CHECK(granted == 30);
}

TEST_CASE("tries at one time that overlap leave nothing held where they are refused") {
  Database database;
  std::array<Engine, 2> engines{database.engine(), database.engine()};
  for (int turn = 0; turn < 10; ++turn) {
    std::array<std::optional<LockSet>, 4> sets;
    in_parallel(4, [&](int thread) {
      auto& engine = engines.at(thread % 2);
      sets.at(thread) = thread % 2 == 0 ? engine.try_lock_all({"x", "y", "z"}) : engine.try_lock_all({"z", "y", "w"});
    });
    const auto granted = std::ranges::count_if(sets, [](const auto& set) { return set.has_value(); });
    CHECK(granted <= 1);
    CHECK(database.admin().held() == 3 * granted);
  }
}

TEST_CASE("who waits for several holds none of them meanwhile, and is woken when the one in the way is released") {
  Database database;
  auto engine = database.engine(only_woken()), other = database.engine();
  std::optional<Lock> theirs = engine.lock("b");  // what others hold is heard of as of one name
  auto set = std::async(std::launch::async, [&] { return engine.try_lock_all_for({"a", "b", "c"}, far_longer()); });
  REQUIRE(waits_for(engine, "b"));
  CHECK(database.admin().held() == 1);
  CHECK(other.try_lock_all({"a", "c"}).has_value());
  theirs.reset();
  REQUIRE(set.get());
  CHECK(database.admin().held() == 0);
}

TEST_CASE(
    "who has waited for one name and finds another one taken gives back, also from its at-least time, and waits on") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  std::optional<Lock> first = other.lock("b"), second;
  auto set = std::async(std::launch::async, [&] {
    return engine.try_lock_all_for({"a", "b"}, far_longer(), {.at_least = 1h});
  });
  REQUIRE(waits_for(engine, "b"));
  second = other.lock("a");
  first.reset();
  REQUIRE(waits_for(engine, "a"));
  CHECK(database.admin().held() == 1);
  CHECK(other.try_lock("b").has_value());
  second.reset();
  auto granted = set.get();
  REQUIRE(granted);
  const auto left = [&](const char* name) {
    return database.admin().reopens_at(name) - database.admin().acquired_at(name);
  };
  CHECK(left("a") >= 1h);
  CHECK(left("b") >= 1h);
  CHECK(granted->release() == Released::freed);
  CHECK_FALSE(other.try_lock("a"));
  CHECK_FALSE(other.try_lock("b"));
}

TEST_CASE(
    "a wait for several ends at its deadline and when it is stopped, names what was in the way, and leaves nothing "
    "held") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  const auto theirs = other.lock("b");
  Refusal refusal;
  const Stopwatch time;
  CHECK_FALSE(answered([&] { return engine.try_lock_all_for({"a", "b"}, 50ms, {}, {}, &refusal); }));
  CHECK(time.elapsed() >= 50ms);
  CHECK(refusal.why == Refused::timed_out);
  CHECK(refusal.holder.name == "b");
  CHECK_FALSE(answered([&] { return engine.try_lock_all_for({"a", "b"}, 0ms, {}, {}, &refusal); }));
  CHECK(refusal.why == Refused::busy);
  std::stop_source stop;
  auto set = std::async(std::launch::async, [&] {
    return engine.lock_all({"a", "b"}, {}, stop.get_token(), &refusal);
  });
  REQUIRE(waits_for(engine, "b"));
  stop.request_stop();
  CHECK_FALSE(set.get());
  CHECK(refusal.why == Refused::stopped);
  CHECK_FALSE(engine.lock_all({"c", "d"}, {}, stop.get_token()));
  CHECK(database.admin().held() == 1);
}

TEST_CASE("stopped at any moment, a wait for several leaves nothing held") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  std::minstd_rand random(7);
  for (int turn = 0; turn < 20; ++turn) {
    std::stop_source stop;
    auto theirs = std::async(std::launch::async, [&] {
      return other.try_lock_all_for({"c", "b"}, far_longer(), {}, stop.get_token()).has_value();
    });
    auto set = std::async(std::launch::async, [&] {
      return engine.try_lock_all_for({"a", "b", "c"}, far_longer(), {}, stop.get_token()).has_value();
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    stop.request_stop();
    static_cast<void>(set.get());
    static_cast<void>(theirs.get());
    CHECK(eventually([&] { return database.admin().held() == 0; }));
  }
}

TEST_CASE("what the thread or its job holds already is entered, and stays held when the set is gone") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  const auto outer = engine.lock("b");
  {
    const auto set = engine.try_lock_all({"a", "b"});
    REQUIRE(set);
    CHECK((*set)["b"].token() == outer.token());
    CHECK(engine.hold_count("a") == 1);
    CHECK(engine.hold_count("b") == 2);
    const auto inner = engine.try_lock_all({"b", "a"});
    REQUIRE(inner);
    CHECK((*inner)["a"].token() == (*set)["a"].token());
    CHECK(engine.try_lock("a").has_value());
    CHECK_FALSE(engine.try_lock_all({"a", "b"}, {.reentrance = Reentrance::none}));
  }
  CHECK(outer.valid());
  CHECK(engine.hold_count("b") == 1);
  CHECK(database.admin().held() == 1);
  const auto theirs = other.lock("c");
  CHECK_FALSE(engine.try_lock_all({"a", "b", "c"}));
  CHECK(engine.hold_count("b") == 1);
  const auto of_job = engine.lock("order", {.job = "4711"});
  std::thread([&] { CHECK(engine.try_lock_all({"order", "a"}, {.job = "4711"}).has_value()); }).join();
  CHECK(of_job.valid());
}

TEST_CASE("names of a node are entered by all of its engines") {
  Database database;
  auto engine = database.engine({.node = "replica-1"}), peer = database.engine({.node = "replica-1"}),
       other = database.engine({.node = "replica-2"});
  const LockOptions of_node{.reentrance = Reentrance::node};
  auto set = engine.lock_all({"b", "a"}, of_node);
  auto joined = peer.try_lock_all({"a", "b", "c"}, of_node);
  REQUIRE(joined);
  CHECK((*joined)["a"].token() == set["a"].token());
  CHECK_FALSE(other.try_lock_all({"d", "c"}, of_node));
  CHECK(joined->release() == Released::still_held);
  CHECK(set.valid());
  CHECK(set.release() == Released::freed);
}

TEST_CASE("with tickets a wait for several comes in its turn at the name in the way") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  const LockOptions in_turn{.fairness = Fairness::fifo};
  std::optional<Lock> theirs = other.lock("b");
  auto set = std::async(std::launch::async, [&] { return engine.try_lock_all_for({"a", "b"}, far_longer(), in_turn); });
  REQUIRE(eventually([&] { return !other.waiters("b").empty() && other.waiters("b").front().ticket > 0; }));
  CHECK_FALSE(database.engine().try_lock_all({"a", "b"}));
  theirs.reset();
  CHECK(set.get().has_value());
}

TEST_CASE("a set tells when one of its locks is lost, and releases the others") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto set = engine.lock_all({"a", "b", "c"}, renewed_often());
  std::atomic<int> told = 0;
  const std::stop_callback callback(set.lost(), [&] { ++told; });
  CHECK_FALSE(set.lost().stop_requested());
  CHECK(other.force_release("b", set["b"].token()));
  CHECK(eventually([&] { return told.load() == 1; }));
  CHECK(set.lost().stop_requested());
  CHECK_FALSE(set.valid());
  CHECK_FALSE(static_cast<bool>(set));
  CHECK(set.remaining() == Duration{});
  const auto thrown = thrown_by([&] { set.check(); });
  CHECK(thrown.fault == Fault::lost);
  CHECK(thrown.names("\"b\""));
  CHECK(set["a"].valid());
  CHECK(set.release() == Released::was_lost);
  CHECK(database.admin().held() == 0);
  CHECK(told.load() == 1);
}

TEST_CASE("an inner set is told of a loss as the outer one is, and one that has gone is not") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto outer = engine.lock_all({"a", "b"}, renewed_often());
  const auto inner = engine.lock_all({"b", "c"}, renewed_often());
  std::stop_token gone;
  { gone = engine.lock_all({"a", "b"}).lost(); }
  CHECK(other.force_release("b", outer["b"].token()));
  CHECK(eventually([&] { return outer.lost().stop_requested() && inner.lost().stop_requested(); }));
  CHECK_FALSE(gone.stop_requested());
}

TEST_CASE("a callback of a set that waits for whoever destroys the set keeps nobody from that") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  std::optional<LockSet> set = engine.lock_all({"a", "b"}, renewed_often());
  std::promise<void> destroyed, begun;
  auto may_go = destroyed.get_future().share();
  const auto lost = set->lost();
  std::jthread listener([&] {
    const std::stop_callback callback(lost, [&] {
      begun.set_value();
      may_go.wait();
    });
    may_go.wait();
  });
  CHECK(eventually([&] { return lost.stop_possible(); }));
  REQUIRE(other.force_release("a", (*set)["a"].token()));
  begun.get_future().wait();
  set.reset();
  destroyed.set_value();
}

TEST_CASE("a set extends all of its locks") {
  Database database;
  auto engine = database.engine();
  auto set = engine.lock_all({"a", "b"}, {.lease = 1min, .renew = false});
  CHECK(set.remaining() <= 1min);
  set.extend(1h);
  CHECK(set.remaining() > 50min);
  CHECK(engine.inspect("a")->lease == 1h);
  CHECK(engine.inspect("b")->lease == 1h);
}

TEST_CASE("a fence of a set fences all of its locks, and where one is lost nothing commits") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  auto engine = database.engine(), other = database.engine();
  for (const auto& beginning : database.test_database().beginnings()) {
    INFO(beginning.name);
    database.admin().run("DELETE FROM app");
    auto set = engine.lock_all({"a", "b", "c"});
    {
      Caller caller(database.test_database());
      caller.begin(beginning);
      set.fence(caller.native());
      caller.run("INSERT INTO app VALUES (1)");
      caller.run("COMMIT");
      CHECK(database.admin().number("SELECT count(*) FROM app") == 1);
    }
    CHECK(other.force_release("c", set["c"].token()));
    Caller caller(database.test_database());
    caller.begin(beginning);
    const auto thrown = thrown_by([&] { set.fence(caller.native()); });
    CHECK(thrown.fault == Fault::lost);
    CHECK(thrown.names("\"c\""));
    try {
      caller.run("INSERT INTO app VALUES (2)");
      caller.run("COMMIT");
    } catch (const std::exception&) {  // it was made impossible
    }
    CHECK(database.admin().number("SELECT count(*) FROM app") == 1);
    CHECK(set.release() == Released::was_lost);
  }
}

TEST_CASE("with_fence of a set begins, fences all, works and commits, and is refused where one is lost") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  auto engine = database.engine(), other = database.engine();
  auto set = engine.lock_all({"a", "b"}, renewed_often());
  Caller caller(database.test_database());
  const auto work = [&] { caller.run("INSERT INTO app VALUES (1)"); };
  set.with_fence(caller.native(), work);
  CHECK(database.admin().number("SELECT count(*) FROM app") == 1);
  CHECK(set.valid());
  CHECK(other.force_release("b", set["b"].token()));
  CHECK(thrown_by([&] { set.with_fence(caller.native(), work); }).fault == Fault::lost);
  CHECK(database.admin().number("SELECT count(*) FROM app") == 1);
  CHECK(set.release() == Released::was_lost);
  CHECK(thrown_by([&] { set.with_fence(caller.native(), work); }).fault == Fault::lost);
}

TEST_CASE("a set may be moved and outlives its engine; one that was moved from holds nothing") {
  Database database;
  std::optional<Engine> engine = database.engine();
  auto set = engine->lock_all({"a", "b"});
  engine.reset();
  CHECK(set.valid());
  auto moved = std::move(set);
  CHECK(moved.valid());
  CHECK(moved["a"].valid());
  for (auto* nothing : {&set}) {  // NOLINT: it was moved from
    CHECK(nothing->empty());
    CHECK_FALSE(nothing->valid());
    CHECK(nothing->begin() == nothing->end());
    CHECK(nothing->lost().stop_requested());
    CHECK(nothing->remaining() == Duration{});
    CHECK_FALSE(nothing->contains("a"));
    CHECK(thrown_by([&] { nothing->check(); }).fault == Fault::misuse);
    CHECK(thrown_by([&] { nothing->release(); }).fault == Fault::misuse);
    CHECK(thrown_by([&] { static_cast<void>((*nothing)["a"]); }).fault == Fault::misuse);
    CHECK(thrown_by([&] { nothing->extend(1min); }).fault == Fault::misuse);
  }
  set = std::move(moved);
  CHECK(set.valid());
  set = LockSet();
  CHECK(database.admin().held() == 0);
}

TEST_CASE("release_all ends a set, which is told and is over") {
  Database database;
  auto engine = database.engine();
  auto set = engine.lock_all({"a", "b"});
  const auto lost = set.lost();
  CHECK(engine.release_all().freed == 2);
  CHECK(eventually([&] { return lost.stop_requested(); }));
  CHECK_FALSE(set.valid());
  CHECK(set.release() == Released::freed);
}
