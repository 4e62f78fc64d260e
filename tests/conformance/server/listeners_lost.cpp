// What is promised of listeners where there is a server: only what is wanted is told, a listener says when it is
// cut off, and the death of whoever notifies is heard.
#include "api/open.hpp"
#include "support/caller.hpp"
#include "support/listeners.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;
using dialects::AwaitedLock;

namespace {

// Whether the listener has thrown, as it must before long.
bool fails(dialects::Listener& listener, std::span<const AwaitedLock> awaited) {
  return eventually([&] {
    try {
      static_cast<void>(listener.wait(awaited, soon(100ms)));
      return false;
    } catch (const Failure&) { return true; }
  });
}

}  // namespace

TEST_CASE("neither a release that nobody waits for nor a caller's transaction notifies") {
  ServerDatabase database;
  make_wanted(*database, "loud");
  make_wanted(*database, "transaction");
  NotifyingHolder holder(*database);
  auto engine = database->engine();
  Caller caller(database->test_database());
  const AwaitedLock awaited[] = {{"loud", holder.actor()}};
  const auto listener = listener_of(*database);
  REQUIRE(listener);
  for (int round = 0; round < 3; ++round) {
    holder.take_and_free("quiet");
    caller.begin(database->test_database().beginnings().front());
    CHECK(engine.try_lock_in(caller.native(), "transaction", 2s));
    caller.run("COMMIT");
    CHECK(holder.take_and_free_until("loud", [&] {
      const auto notification = listener->wait(awaited, soon(100ms));
      CHECK_FALSE(heard(notification, "quiet"));
      CHECK_FALSE(heard(notification, "transaction"));
      return heard(notification, "loud");
    }));
  }
}

TEST_CASE("a release in a batch notifies") {
  ServerDatabase database;
  constexpr int threads = 12;
  const auto job = [](int i) { return "job " + std::to_string(i); };
  make_wanted(*database, job(7));
  const auto engine = random_identity().substr(0, 16);
  const auto actor = engine + "0123456789abcdef";
  const auto table = open_table(database->url(), 1, engine);
  const auto take_and_free_all = [&] {
    std::vector<store::LeaseKey> claims(threads);
    std::vector<std::string> names, owners;
    for (int i = 0; i < threads; ++i) {
      names.push_back(job(i));
      owners.push_back(random_identity());
    }
    in_parallel(threads, [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      const Name name(names[at]);
      const store::AcquireRequest ask{name, owners[at], "node", "label", actor, 1h, {}, ""};
      const auto answer = table->acquire(ask, soon());
      claims[at] = {names[at], owners[at], answer.token.value()};
    });
    in_parallel(threads, [&](int i) {
      const auto& claim = claims[static_cast<std::size_t>(i)];
      CHECK(table->release(claim, soon()));
    });
  };
  const AwaitedLock awaited[] = {{job(7), actor}};
  const auto listener = listener_of(*database);
  REQUIRE(listener);
  // Where the holder has to notify, it learns with its first release that somebody listens.
  REQUIRE(eventually([&] {
    take_and_free_all();
    return heard(listener->wait(awaited, soon(100ms)), job(7));
  }));
  // Who comes first goes alone: it is rarely this one.
  for (int round = 0; round < 20; ++round) {
    take_and_free_all();
    REQUIRE(heard(listener->wait(awaited, soon(5s * slowness())), job(7)));
  }
}

TEST_CASE("where it is told who need wake, it is the queue's first") {
  ServerDatabase database;
  make_wanted(*database, "job");
  const std::string gone(32, '1'), first(32, '2'), second(32, '3'), served(32, '4'), elsewhere(32, '5');
  const auto wait = [&](const std::string& name, const std::string& owner, int ticket, const char* expires) {
    database->admin().run("INSERT INTO resource_lock_waiter (name, owner, mode, ticket, since, expires_at) VALUES ('" +
                          name + "', '" + owner + "', 'fifo', " + std::to_string(ticket) + ", 0, " + expires + ")");
  };
  database->admin().run("UPDATE resource_lock SET next_ticket = 5, served_ticket = 1 WHERE name = 'job'");
  wait("job", served, 1, "9000000000000000");
  wait("job", gone, 2, "1");
  wait("job", second, 4, "9000000000000000");
  wait("job", first, 3, "9000000000000000");
  wait("elsewhere", elsewhere, 2, "9000000000000000");
  // A grant of the first one's, as if it had been its turn.
  const auto row =
      "UPDATE resource_lock SET owner = 'abc', expires_at = 9000000000000000, token = 100 WHERE name = 'job'";
  NotifyingHolder holder(*database);
  const AwaitedLock awaited[] = {{"job", holder.actor()}};
  const auto listener = listener_of(*database);
  REQUIRE(listener);
  CHECK(eventually([&] {
    database->admin().run(row);
    const store::LeaseKey claim{"job", "abc", Token{100}};
    if (!holder.table().release(claim, soon())) return false;
    const auto notification = listener->wait(awaited, soon(100ms));
    for (const auto& one : notification.names) CHECK((one.head.empty() || one.head == first));
    return heard(notification, "job");
  }));
}

TEST_CASE("a listener whose connection has ended says so, and another one hears again") {
  ServerDatabase database;
  make_wanted(*database, "job");
  NotifyingHolder holder(*database);
  const AwaitedLock awaited[] = {{"job", holder.actor()}};
  auto listener = listener_of(*database);
  REQUIRE(listener);
  REQUIRE(holder.take_and_free_until("job", [&] { return heard(listener->wait(awaited, soon(100ms)), "job"); }));
  static_cast<void>(listener->wait(awaited, soon(1ms)));
  database.server().disconnect_everybody();
  CHECK(fails(*listener, awaited));
  listener = listener_of(*database);
  REQUIRE(listener);
  NotifyingHolder next(*database);
  const AwaitedLock other[] = {{"job", next.actor()}};
  CHECK(next.take_and_free_until("job", [&] { return heard(listener->wait(other, soon(100ms)), "job"); }));
}

TEST_CASE("those who listen to a release signal hear that it has died") {
  ServerDatabase database;
  const std::string engine = "00112233445566aa";
  const auto resolved = api::resolve(database->url(), {});
  dialects::TableNames names;
  names.schema = resolved.connector->connect(soon())->default_schema(soon());
  auto release_signal = resolved.connector->release_signal(names, engine);
  if (!release_signal) return;  // here a statement notifies by itself, so that nobody has to be alive for it
  const AwaitedLock awaited[] = {{"job", engine + "0000000000000000"}};
  const auto listener = listener_of(*database);
  REQUIRE(listener);
  CHECK(eventually([&] {
    static_cast<void>(listener->wait(awaited, soon(20ms)));
    return !listener->hears(awaited[0]);
  }));
  release_signal->send(soon());
  CHECK(eventually([&] { return listener->wait(awaited, soon(100ms)).empty() && listener->hears(awaited[0]); }));
  release_signal->send(soon());
  CHECK(heard(listener->wait(awaited, soon()), "job"));
  CHECK(eventually([&] { return listener->wait(awaited, soon(100ms)).empty() && listener->hears(awaited[0]); }));
  release_signal.reset();
  CHECK(heard(listener->wait(awaited, soon()), "job"));
}

TEST_CASE("behind a pooler there is no listener, and nobody to notify") {
  ServerDatabase database;
  dialects::ConnectOptions options;
  options.prepared_statements = false;
  const auto resolved = api::resolve(database->url(), options);
  CHECK_FALSE(resolved.connector->listener({}, soon()));
  CHECK_FALSE(resolved.connector->release_signal({}, "00112233445566aa"));
}
