// The promise that a Lock or an Engine that was moved from, released or detached is never dangerous, and says what it
// is.
#include "support/caller.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <stop_token>
#include <type_traits>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

template <class Call>
bool throws(Fault fault, Call call) {
  const auto thrown = thrown_by(call);
  if (thrown.fault != fault) MESSAGE(thrown.text);
  return thrown.fault == fault;
}

// Every member that needs the lease throws `fault`.
void check_refuses(Lock& lock, Fault fault, Database& database, Caller& application) {
  int worked = 0;
  CHECK(throws(fault, [&] { lock.check(); }));
  CHECK(throws(fault, [&] { lock.extend(1min); }));
  CHECK(throws(fault, [&] { lock.ensure(1min); }));
  CHECK(throws(fault, [&] { lock.update_metadata("next: 7"); }));
  CHECK(throws(fault, [&] { lock.downgrade(); }));
  CHECK(throws(fault, [&] { lock.try_upgrade(); }));
  application.run(database.test_database().begin_writing());
  CHECK(throws(fault, [&] { lock.fence(application.runner(), {.doom = false}); }));
  application.run("ROLLBACK");
  CHECK(throws(fault, [&] { lock.with_fence(application.runner(), [&] { ++worked; }); }));
  CHECK(throws(fault, [&] { static_cast<void>(lock.fence_sql()); }));
  CHECK(worked == 0);
  CHECK_FALSE(lock.valid());
  CHECK(!lock);
  CHECK(lock.remaining() == Duration{});
  CHECK(lock.loss() == std::nullopt);
  CHECK(lock.wanted() == std::nullopt);
}

}  // namespace

TEST_CASE("a lock that was moved from answers misuse, and harmlessly where it cannot throw") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("job");
  const Lock now(std::move(lock));
  Caller application(database.test_database());
  check_refuses(lock, Fault::misuse, database, application);  // NOLINT(bugprone-use-after-move)
  CHECK(throws(Fault::misuse, [&] { lock.release(); }));
  CHECK(lock.name().empty());
  CHECK(lock.owner().empty());
  CHECK(lock.token() == Token{});
  CHECK(lock.lost().stop_requested());  // whoever works as long as the lock is held stops at once
  CHECK(throws(Fault::misuse, [&] { lock.detach(); }));
  CHECK(throws(Fault::misuse, [&] { static_cast<void>(lock.grant()); }));
  CHECK(now.valid());
  CHECK(database.admin().owner("job") == now.owner());

  lock = engine.lock("other");
  CHECK(lock.valid());
  auto& itself = lock;
  lock = std::move(itself);
  CHECK(lock.valid());
  CHECK(lock.release() == Released::freed);
}

TEST_CASE("a lock that was detached or released answers the same on every member") {
  Database database;
  auto engine = database.engine();
  Caller application(database.test_database());

  auto detached = engine.lock("job");
  auto entry = engine.lock("job");  // another entry of the same lease
  const auto owner = detached.owner();
  const auto grant = detached.detach();
  for (auto* lock : {&detached, &entry}) {
    check_refuses(*lock, Fault::lost, database, application);
    CHECK_FALSE(lock->lost().stop_requested());
    CHECK(lock->release() == Released::unconfirmed);
    CHECK(lock->detach() == grant);
    CHECK(lock->grant() == grant);
    CHECK(lock->token() == grant.token);
    CHECK(lock->owner() == owner);
    CHECK(lock->name() == "job");
  }
  CHECK(database.admin().owner("job") == owner);
  free_by_force(engine, "job");

  auto released = engine.lock("job");
  CHECK(released.release() == Released::freed);
  check_refuses(released, Fault::lost, database, application);
  CHECK(released.release() == Released::freed);

  const auto holder = engine.lock("job");
  auto left = engine.lock("job");
  CHECK(left.release() == Released::still_held);
  check_refuses(left, Fault::lost, database, application);  // though another entry holds on
  CHECK(holder.valid());
}

TEST_CASE("an engine that was moved from answers misuse, and can be given another database") {
  Database database;
  auto engine = database.engine();
  auto now = std::move(engine);
  const auto misuse = [](auto call) { return throws(Fault::misuse, call); };
  // NOLINTBEGIN(bugprone-use-after-move)
  CHECK(misuse([&] { static_cast<void>(engine.try_lock("job")); }));
  CHECK(misuse([&] { static_cast<void>(engine.try_lock_for("job", 1s)); }));
  CHECK(misuse([&] { static_cast<void>(engine.lock("job")); }));
  CHECK(misuse([&] { static_cast<void>(engine.lock(std::stop_token{}, "job")); }));
  CHECK(misuse([&] { static_cast<void>(engine.wait_free("job", 1s)); }));
  CHECK(misuse([&] { static_cast<void>(engine.inspect("job")); }));
  CHECK(misuse([&] { static_cast<void>(engine.list()); }));
  CHECK(misuse([&] { static_cast<void>(engine.waiters()); }));
  CHECK(misuse([&] { static_cast<void>(engine.force_release("job", Token{1})); }));
  CHECK(misuse([&] { engine.reap(); }));
  CHECK(misuse([&] { engine.reap_all(); }));
  CHECK(misuse([&] { const Mutex mutex(engine, "job"); }));
  Caller application(database.test_database());
  CHECK(misuse([&] { static_cast<void>(engine.try_lock_in(application.runner(), "job")); }));
  // NOLINTEND(bugprone-use-after-move)
  auto& itself = now;
  now = std::move(itself);
  CHECK(now.try_lock("job").has_value());
  engine = std::move(now);
  CHECK(engine.try_lock("job").has_value());
}
