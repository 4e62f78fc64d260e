// Tests that an attempt which was granted nothing says why, and who is in the way; and what a thread knows of what it holds.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <future>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("an attempt says why it is empty, and who holds the lock") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto held = other.try_lock("job", {.renew = false, .label = "nightly"});
  REQUIRE(held);
  CHECK_FALSE(held.why());
  CHECK(thrown_by([&] { static_cast<void>(held.holder()); }).fault == Fault::misuse);

  const auto busy = engine.try_lock("job");
  REQUIRE_FALSE(busy);
  CHECK(busy.why() == Refusal::busy);
  REQUIRE(busy.holder());
  CHECK(busy.holder()->label == "nightly");
  CHECK(busy.holder()->owner == held->owner());

  const auto late = engine.try_lock_for("job", 20ms);
  CHECK(late.why() == Refusal::timed_out);
  CHECK(late.holder()->token == held->token());

  std::stop_source source;
  auto waiter = std::async(std::launch::async, [&] { return engine.lock("job", {}, source.get_token()); });
  CHECK(eventually([&] { return engine.stats().waiting.contains("job"); }));
  source.request_stop();
  const auto stopped = waiter.get();
  REQUIRE_FALSE(stopped);
  CHECK(stopped.why() == Refusal::stopped);
  CHECK(stopped.holder()->label == "nightly");
  CHECK(engine.try_lock_for("job", 1h, {}, source.get_token()).why() == Refusal::stopped);

  held->release();
  CHECK(busy.holder()->state == State::free);  // as it is when it is asked
  std::optional<Lock> plain = engine.try_lock("job");
  REQUIRE(plain);
  CHECK(plain->valid());
}

TEST_CASE("an attempt that outlives its engine keeps its reason, and has nobody to ask") {
  Database database;
  auto other = database.engine();
  const auto held = other.lock("job");
  std::optional<Engine> engine(database.engine());
  const auto busy = engine->try_lock("job");
  engine.reset();
  CHECK(busy.why() == Refusal::busy);
  const auto thrown = thrown_by([&] { static_cast<void>(busy.holder()); });
  CHECK(thrown.fault == Fault::misuse);
  CHECK_MESSAGE(thrown.names("job"), thrown.text);
}

TEST_CASE("in a transaction too, and of a row that another transaction has locked") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Caller first(database.place()), second(database.place());
  engine.try_lock("job").reset();
  {
    const auto held = other.lock("job");
    first.begin(database.place().beginnings().front());
    CHECK(engine.try_lock_in(first.native(), "job").why() == Refusal::busy);
    CHECK(engine.try_lock_in(first.native(), "job", 20ms).why() == Refusal::timed_out);
    const auto lease = engine.try_lock_in(first.native(), "job", 0ms, {.lease = 30s});
    CHECK(lease.why() == Refusal::busy);
    first.run("ROLLBACK");
  }
  first.begin(database.place().beginnings().front());
  const auto token = engine.try_lock_in(first.native(), "job");
  REQUIRE(token);
  CHECK_FALSE(token.why());
  CHECK(number(*token) > 0);
  if (opener().server_place ==
      nullptr) {  // whoever writes to a file is its only writer, and need not be after the lock
    CHECK(thrown_by([&] { static_cast<void>(other.try_lock("job")); }).fault == Fault::timeout);
    first.run("ROLLBACK");
    return;
  }
  const auto locked = other.try_lock("job");
  REQUIRE_FALSE(locked);
  CHECK(locked.why() == Refusal::locked);
  CHECK(locked.holder()->state == State::locked);
  Holder row;
  CHECK_FALSE(other.try_lock("job", {}, &row));
  CHECK(row.state == State::locked);
  first.run("ROLLBACK");
  CHECK(locked.holder()->state == State::free);
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
  auto bounded = engine.lock("bounded", {.lease = 1min, .max_hold = 2min});
  CHECK(thrown_by([&] { bounded.ensure(3min); }).fault == Fault::misuse);
  CHECK(bounded.valid());
  lock.release();
  CHECK(thrown_by([&] { lock.ensure(1s); }).fault == Fault::lost);
}
