// The promise that a held lease is renewed, and that its holder learns of a loss in time.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

bool told_lost(const Lock& lock) {
  return eventually([&] { return lock.lost().stop_requested(); });
}

}  // namespace

TEST_CASE("a lease is renewed beyond several of its lengths, and nobody else gets in") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  const auto lease = 2500ms * slowness();
  const auto lock = engine.try_lock("job", {.lease = lease});
  REQUIRE(lock);
  const auto begun = database.admin().acquired_at("job");
  CHECK(eventually([&] {
    CHECK_FALSE(other.try_lock("job"));
    CHECK(lock->valid());
    return database.admin().expires_at("job") > begun + 2 * lease;
  }));
  CHECK(database.admin().token("job") == lock->token());
  CHECK_FALSE(lock->lost().stop_requested());
  CHECK_FALSE(lock->loss());
}

TEST_CASE("a lease is renewed although nothing of its engine but the lock is left") {
  Database database;
  const auto lease = 2500ms * slowness();
  std::optional<Lock> lock;
  {
    auto engine = database.engine();
    lock = engine.try_lock("job", {.lease = lease});
  }
  REQUIRE(lock);
  const auto begun = database.admin().acquired_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > begun + 2 * lease; }));
  CHECK(lock->valid());
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("a renewal comes once a third of the lease has passed, or as often as asked") {
  Database database;
  auto engine = database.engine();
  const auto lock = engine.try_lock("slow", {.lease = 1h});
  const auto often = engine.try_lock("often", {.lease = 1h, .renew_every = 50ms});
  REQUIRE(lock);
  REQUIRE(often);
  const auto end = database.admin().expires_at("slow");
  const auto often_end = database.admin().expires_at("often");
  CHECK(eventually([&] { return database.admin().expires_at("often") > often_end + 200ms; }));
  CHECK(database.admin().expires_at("slow") == end);
}

TEST_CASE("a lease that shall not be renewed ends, and its holder knows before anybody else can have it") {
  Database database;
  auto engine = database.engine();
  const auto lease = 1s * slowness();
  const auto lock = engine.try_lock("job", {.lease = lease, .renew = false});
  REQUIRE(lock);
  CHECK(lock->valid());
  CHECK(lock->remaining() > Duration{});
  CHECK(lock->remaining() < lease);
  // Read in this order: who believes at the end of a round believed while the row was read.
  CHECK(eventually([&] {
    const auto row = engine.inspect("job");
    REQUIRE(row);
    if (lock->valid()) CHECK(row->state == State::held);
    return row->state == State::expired;
  }));
  CHECK_FALSE(lock->valid());
  CHECK(lock->remaining() == Duration{});
  CHECK(lock->loss() == Loss::unconfirmed);
  CHECK(thrown_by([&] { lock->check(); }).fault == Fault::lost);
  CHECK(told_lost(*lock));
}

TEST_CASE("a forced release is noticed by the holder, and is told as such") {
  Database database;
  EventLog news;
  auto engine = database.engine({.observer = news.observer()});
  auto other = database.engine();
  std::optional<Lock> lock;
  CHECK(eventually([&] {  // where there is no time to look into it, it is only told as refused
    lock = engine.try_lock("job", renewed_often());
    REQUIRE(lock);
    CHECK(other.force_release("job", lock->token()));
    CHECK(told_lost(*lock));
    return lock->loss() == Loss::forced;
  }));
  CHECK_FALSE(lock->valid());
  CHECK(thrown_by([&] { lock->check(); }).fault == Fault::lost);
  CHECK(lock->release() == Released::was_lost);
  REQUIRE(news.comes(Event::Kind::lost));
  CHECK(eventually([&] { return news.of(Event::Kind::lost).back().token == lock->token(); }));
  CHECK(news.of(Event::Kind::lost).back().name == "job");
}

TEST_CASE("whatever the holder asks for first, a forced release is told as such") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  const std::vector<std::function<void(Lock&)>> calls{
      [](Lock& lock) { lock.extend(1h); }, [](Lock& lock) { lock.ensure(2h); },
      [](Lock& lock) { lock.update_metadata("page 7"); }, [](Lock& lock) { lock.downgrade(); }};
  for (const auto& call : calls)
    CHECK(eventually([&] {  // as above
      auto lock = engine.lock("job", {.lease = 1h, .renew = false});
      REQUIRE(other.force_release("job", lock.token()));
      CHECK(thrown_by([&] { call(lock); }).fault == Fault::lost);
      return lock.loss() == Loss::forced;
    }));
}

TEST_CASE("a takeover is noticed by the holder, and leaves the next one alone") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto lock = engine.try_lock("job", renewed_often());
  REQUIRE(lock);
  std::optional<Lock> next;
  CHECK(eventually([&] {  // a renewal may come between the two
    database.admin().expire("job");
    next = other.try_lock("job");
    return next.has_value();
  }));
  CHECK(told_lost(*lock));
  CHECK(lock->loss() == Loss::refused);
  lock.reset();
  CHECK(database.admin().owner("job") == next->owner());
}

TEST_CASE("a row that has vanished is a lost lease") {
  Database database;
  auto engine = database.engine();
  const auto lock = engine.try_lock("job", renewed_often());
  REQUIRE(lock);
  database.admin().run("DELETE FROM resource_lock WHERE name = 'job'");
  CHECK(told_lost(*lock));
  CHECK(lock->loss() == Loss::refused);
  CHECK_FALSE(database.admin().exists("job"));
}

TEST_CASE("what is registered on a loss runs once, on a thread that may block and may end the lock") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto lock = engine.try_lock("job", renewed_often());
  const auto beside = engine.try_lock("beside", renewed_often());
  REQUIRE(lock);
  REQUIRE(beside);
  std::atomic<int> called{0};
  std::atomic<bool> unblock{false};
  const auto lost = lock->lost();
  const std::stop_callback callback(lost, [&] {
    ++called;
    lock.reset();
    eventually([&] { return unblock.load(); });
  });
  CHECK(other.force_release("job", lock->token()));
  CHECK(eventually([&] { return called == 1; }));
  const auto begun = database.admin().expires_at("beside");
  CHECK(eventually([&] { return database.admin().expires_at("beside") > begun + 300ms; }));  // a few renewals
  CHECK(beside->valid());
  unblock = true;
}

TEST_CASE("a row that a transaction keeps locked for less than the lease is no loss") {
  Database database;
  auto engine = database.engine();
  const auto lease = 3s * slowness();
  const auto lock = engine.try_lock("job", {.lease = lease, .renew_every = 100ms});
  REQUIRE(lock);
  database.admin().block("job");
  const auto before = Admin(database.test_database()).expires_at("job");
  CHECK(eventually([&] { return lock->remaining() < lease * 2 / 3; }));  // renewals have failed for a while
  CHECK(lock->valid());
  CHECK(Admin(database.test_database()).expires_at("job") == before);
  database.admin().unblock();
  CHECK(eventually([&] { return lock->remaining() > lease * 5 / 6; }));
  CHECK_FALSE(lock->loss());
}

TEST_CASE("a released lease is not renewed any more") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job", renewed_often());
  const auto other = engine.try_lock("other", renewed_often());
  REQUIRE(lock);
  REQUIRE(other);
  CHECK(lock->release() == Released::freed);
  CHECK(lock->release() == Released::freed);  // answers the same again
  CHECK_FALSE(lock->valid());
  const auto row = database.admin().row("job");
  const auto begun = database.admin().expires_at("other");
  CHECK(eventually([&] { return database.admin().expires_at("other") > begun + 300ms; }));  // a few renewals
  CHECK(database.admin().row("job") == row);
}

TEST_CASE("an extension counts from now, and is the length of the renewals to come") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job", {.lease = 10min, .renew_every = 50ms});
  REQUIRE(lock);
  const Duration length = 20min;
  lock->extend(length);
  CHECK(lock->remaining() <= length);
  CHECK(engine.inspect("job")->lease == length);
  const auto end = database.admin().expires_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > end + 200ms; }));
  CHECK(lock->valid());
  lock->extend(2h);
  CHECK(lock->remaining() > 1h);
  free_by_force(engine, "job");
  CHECK(thrown_by([&] { lock->extend(1h); }).fault == Fault::lost);
}

TEST_CASE("leases from a few milliseconds to ten years are exact to the step of the database's clock") {
  Database database;
  auto engine = database.engine();
  for (const Duration lease : {3001us, 3500us, 20000us, 299999us, Duration{30s}, Duration{24h * 3652}}) {
    const auto lock = engine.try_lock("job", {.lease = lease, .renew = false});
    REQUIRE(lock);
    const auto length = database.admin().expires_at("job") - database.admin().acquired_at("job");
    CHECK(length >= lease);  // the end is counted from a later reading of the clock, where they are two
    CHECK(length < lease + 100ms * slowness());
    CHECK(engine.inspect("job")->lease == lease);
  }
}

TEST_CASE("who is told of events learns of grants and releases") {
  Database database;
  EventLog news;
  {
    auto engine = database.engine({.observer = [heard = news.observer()](const Event& event) {
      heard(event);
      throw std::runtime_error("an observer that throws harms nobody");
    }});
    engine.try_lock("job").reset();
  }
  REQUIRE(news.comes(Event::Kind::granted));
  REQUIRE(news.comes(Event::Kind::released));
  CHECK(news.of(Event::Kind::granted).front().name == "job");
  CHECK(news.of(Event::Kind::granted).front().token == news.of(Event::Kind::released).front().token);
}
