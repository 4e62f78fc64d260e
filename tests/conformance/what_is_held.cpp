// Tests what is told of a lock: to who was granted nothing, who has it; to a thread, what it holds, and for how long.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <future>
#include <stop_token>
#include <thread>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a call that was granted nothing tells why, and who holds the lock, whether it waits or not") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  const auto held = other.lock("job", {.renew = false, .label = "nightly"});
  Refusal refusal;
  // Where the row could not be read within a second it is the name alone.
  const auto is_read = [&] { return !refusal.holder.owner.empty(); };
  CHECK(eventually([&] { return !engine.try_lock("job", {}, &refusal) && is_read(); }));
  CHECK(refusal.why == Refused::busy);
  CHECK(refusal.holder.label == "nightly");
  CHECK(refusal.holder.state == State::held);
  refusal = {};
  CHECK(eventually(
      [&] { return !answered([&] { return engine.try_lock_for("job", 20ms, {}, {}, &refusal); }) && is_read(); }));
  CHECK(refusal.why == Refused::timed_out);
  CHECK(refusal.holder.owner == held.owner());
  CHECK_FALSE(answered([&] { return engine.try_lock_for("job", 0s, {}, {}, &refusal); }));
  CHECK(refusal.why == Refused::busy);
  refusal.holder.label = "as it was";
  CHECK(engine.try_lock("other", {}, &refusal));
  CHECK(refusal.holder.label == "as it was");
}

TEST_CASE("a call that was stopped says so, and nothing else") {
  Database database;
  auto engine = database.engine();
  const auto held = database.engine().lock("job", {.renew = false, .label = "nightly"});
  std::stop_source source;
  Refusal refusal, early, before;
  auto waiter = std::async(std::launch::async, [&] { return engine.lock("job", {}, source.get_token(), &refusal); });
  CHECK(eventually([&] { return engine.stats().waiting.contains("job"); }));
  source.request_stop();
  CHECK_FALSE(waiter.get());
  CHECK_FALSE(engine.try_lock_for("job", 1h, {}, source.get_token(), &early));
  CHECK_FALSE(engine.lock(source.get_token(), "job", {}, &before));
  for (const auto& told : {refusal, early, before}) {
    CHECK(told.why == Refused::stopped);
    CHECK(told.holder.name == "job");
    CHECK(told.holder.label.empty());  // who asked to stop waits for no answer
  }
}

TEST_CASE("a row that another transaction has locked is told from one that somebody holds, and from a free one") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine({.timeouts = {.request = time_in_vain()}});
  Caller first(database.test_database());
  engine.try_lock("free").reset();
  static_cast<void>(engine.lock("over", {.renew = false}).detach());
  database.admin().expire("over");
  for (const char* name : {"free", "over"}) {
    CAPTURE(name);
    first.begin(database.test_database().beginnings().front());
    REQUIRE(engine.try_lock_in(first.native(), name));
    Refusal refusal;
    if (opener().server_database ==
        nullptr) {  // whoever writes to a file is its only writer, and need not be after the lock
      CHECK(thrown_by([&] { static_cast<void>(other.try_lock(name, {}, &refusal)); }).fault == Fault::timeout);
    } else {
      CHECK_FALSE(other.try_lock(name, {}, &refusal));
      CHECK(refusal.why == Refused::locked);
      CHECK(refusal.holder.state == State::locked);
      refusal = {};
      CHECK_FALSE(answered([&] { return other.try_lock_for(name, 20ms, {}, {}, &refusal); }));
      CHECK(refusal.why == Refused::timed_out);
      CHECK(refusal.holder.state == State::locked);
    }
    first.run("ROLLBACK");
  }
  free_by_force(engine, "over");
}

TEST_CASE("a transaction that was not given a lock is told why, and who holds it") {
  Database database;
  auto engine = database.engine();
  const auto held = database.engine().lock("job", {.renew = false, .label = "nightly"});
  engine.try_lock("free").reset();
  Caller caller(database.test_database());
  const auto refused = [&](const char* name, Duration wait, bool lease) {
    Refusal refusal;
    caller.begin(database.test_database().beginnings().front());
    if (lease) CHECK_FALSE(engine.try_lock_in(caller.native(), name, wait, {.lease = 1h}, &refusal));
    else CHECK_FALSE(engine.try_lock_in(caller.native(), name, wait, &refusal));
    caller.run("ROLLBACK");
    CHECK(refusal.holder.name == name);
    return refusal;
  };
  for (const bool lease : {false, true}) {
    CAPTURE(lease);
    CHECK(refused("job", 0s, lease).why == Refused::busy);
    CHECK(refused("job", 20ms, lease).why == Refused::timed_out);
    CHECK(eventually([&] { return refused("job", 0s, lease).holder.label == "nightly"; }));
  }
  if (opener().server_database == nullptr) return;  // a file has one writer
  Caller first(database.test_database());
  first.begin(database.test_database().beginnings().front());
  REQUIRE(engine.try_lock_in(first.native(), "free"));
  const auto locked = refused("free", 0s, false);
  CHECK(locked.why == Refused::locked);
  CHECK(locked.holder.state == State::locked);
  const auto late = refused("free", 20ms, true);
  CHECK(late.why == Refused::timed_out);
  CHECK(late.holder.state == State::locked);
  first.run("ROLLBACK");
}

TEST_CASE("a lock can be made without a grant, moved into, and asked whether it is held") {
  Database database;
  auto engine = database.engine();
  Lock lock;
  CHECK_FALSE(lock);
  CHECK_FALSE(lock.valid());
  CHECK(lock.name().empty());
  CHECK(lock.lost().stop_requested());
  CHECK(thrown_by([&] { lock.release(); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { lock.ensure(1s); }).fault == Fault::misuse);
  lock = engine.lock("job");
  CHECK(lock);
  lock.release();
  CHECK_FALSE(lock);
}

TEST_CASE("a thread knows what it holds, and how often it has entered it, without a statement") {
  Database database;
  auto engine = database.engine();
  CHECK_FALSE(engine.held_by_me("job"));
  auto outer = engine.lock("job");
  auto inner = engine.lock("job");
  CHECK(engine.hold_count("job") == 2);
  CHECK(engine.held_by_me("job"));
  CHECK_FALSE(engine.held_by_me("other"));
  std::thread([&] { CHECK(engine.hold_count("job") == 0); }).join();
  inner.release();
  CHECK(engine.hold_count("job") == 1);
  outer.release();
  CHECK(engine.hold_count("job") == 0);

  const Job order("order 4711");
  const auto of_job = engine.lock("job", {.job = order});
  CHECK_FALSE(engine.held_by_me("job"));
  std::thread([&] {
    const Job::Scope here(order);
    CHECK(engine.held_by_me("job"));
  }).join();

  auto lost = engine.lock("lost", {.renew = false});
  CHECK(engine.force_release("lost", lost.token()));
  CHECK(thrown_by([&] { lost.extend(1min); }).fault == Fault::lost);
  CHECK_FALSE(engine.held_by_me("lost"));
  CHECK(thrown_by([&] { static_cast<void>(engine.hold_count("")); }).fault == Fault::misuse);
}

TEST_CASE("trust for a piece of work is made sure of: by nothing where there is enough, else by as much as it takes") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("job", {.lease = 2min, .renew = false});
  const auto end = database.admin().expires_at("job");
  lock.ensure(1min);
  lock.ensure(0s);
  CHECK(database.admin().expires_at("job") == end);
  lock.ensure(1h);
  CHECK(lock.remaining() > 1h - far_longer());
  CHECK(database.admin().expires_at("job") > end + 50min);
  const auto longer = database.admin().expires_at("job");
  lock.ensure(50min);
  CHECK(database.admin().expires_at("job") == longer);
  for (const Duration wrong : {Duration{-1s}, Duration{24h * 365 * 11}})
    CHECK(thrown_by([&] { lock.ensure(wrong); }).fault == Fault::misuse);
  lock.release();
  for (const Duration left : {Duration{}, Duration{1s}})
    CHECK(thrown_by([&] { lock.ensure(left); }).fault == Fault::lost);
}

TEST_CASE("what is made sure of has the engine's margin on top, and keeps within max_hold") {
  Database database;
  auto engine = database.engine({.margin = 20min});
  auto lock = engine.lock("job", {.lease = 1h, .renew = false});
  lock.ensure(2h);
  CHECK(lock.remaining() > 2h - far_longer());
  auto bounded = engine.lock("bounded", {.lease = 1h, .max_hold = 2h, .renew = false});
  bounded.ensure(90min);
  CHECK(bounded.remaining() > 90min - far_longer());
  CHECK(thrown_by([&] { bounded.ensure(110min); }).fault == Fault::misuse);
  CHECK(bounded.remaining() > 90min - far_longer());
}
