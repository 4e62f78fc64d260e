// Promises where a server's commits wait for a standby: what the standby may not have is never believed, although the
// server calls it committed when somebody cancels the wait.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <future>
#include <optional>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// While it lives, all commits of the server wait for a standby.
class MissingStandby {
 public:
  explicit MissingStandby(ServerDatabase& database) : server_(database.server()) { server_.await_standby(); }
  ~MissingStandby() { server_.await_standby_no_more(); }
  MissingStandby(const MissingStandby&) = delete;
  MissingStandby& operator=(const MissingStandby&) = delete;

  bool is_waited_for() { return server_.commits_waiting() > 0; }
  void cancel_wait() {
    REQUIRE(eventually([&] { return is_waited_for(); }));
    server_.cancel_waiting_commits();
  }

 private:
  ServerTestDatabase& server_;
};

// A server for the cases of this file. Null: there commits wait for nothing.
PrivateServer* alone() {
  static const auto server = opener().server_database()->has_standbys() ? opener().private_server() : nullptr;
  return server.get();
}

bool is_over(const auto& future) { return future.wait_for(0s) == std::future_status::ready; }

// Answers what `call` does once the standby is there, after its wait has been cancelled twice.
template <class Call>
auto with_cancelled_waits(ServerDatabase& database, const EventLog& news, Call call) {
  std::optional<MissingStandby> standby(std::in_place, database);
  auto calling = std::async(std::launch::async, call);
  for (int i = 0; i < 2 && !is_over(calling); ++i) {
    const auto before = news.of(Event::Kind::retried).size();
    standby->cancel_wait();
    CHECK(eventually([&] {
      return is_over(calling) || (news.of(Event::Kind::retried).size() > before && standby->is_waited_for());
    }));
    CHECK_FALSE(is_over(calling));
  }
  standby.reset();
  return calling.get();
}

}  // namespace

TEST_CASE("a grant or an extension whose wait for the standby is cancelled is asked again until it has it") {
  if (alone() == nullptr) return;
  ServerDatabase database(alone()->test_database());
  for (const bool prepared : {true, false}) {
    CAPTURE(prepared);
    static_cast<void>(MissingStandby(database));  // from here on sessions are quiet
    EventLog news;
    auto engine =
        database->engine({.timeouts = {.request = 5min}, .prepared_statements = prepared, .observer = news.observer()});
    engine.try_lock("old").reset();
    for (const char* name : {"old", "new"}) {
      auto lock = with_cancelled_waits(database, news, [&] { return engine.try_lock(name, {.lease = 10min}); });
      REQUIRE(lock);
      CHECK(lock->valid());
      with_cancelled_waits(database, news, [&] {
        lock->extend(20min);
        return true;
      });
      CHECK(lock->release() == Released::freed);
      database->admin().run("DELETE FROM resource_lock WHERE name = 'new'");
    }
  }
}

TEST_CASE("a release whose wait for the standby is cancelled frees the lock, and the next grant waits anew") {
  if (alone() == nullptr) return;
  ServerDatabase database(alone()->test_database());
  auto engine = database->engine({.timeouts = {.request = 5min, .release = 5min}});
  auto lock = engine.try_lock("job", {.lease = 10min});
  REQUIRE(lock);
  std::optional<MissingStandby> standby(std::in_place, database);
  auto releasing = std::async(std::launch::async, [&] { return lock->release(); });
  standby->cancel_wait();
  CHECK(releasing.get() == Released::freed);
  auto acquiring = std::async(std::launch::async, [&] { return engine.try_lock("job"); });
  CHECK(eventually([&] { return is_over(acquiring) || standby->is_waited_for(); }));
  CHECK_FALSE(is_over(acquiring));
  standby.reset();
  CHECK(acquiring.get());
}

TEST_CASE("with_fence is in doubt when its commit's wait for the standby is cancelled, even in a quiet session") {
  if (alone() == nullptr) return;
  ServerDatabase database(alone()->test_database());
  auto engine = database->engine({.timeouts = {.request = 5min}});
  auto lock = engine.try_lock("job", {.lease = 10min});
  REQUIRE(lock);
  database->admin().run("CREATE TABLE written (number integer)");
  std::optional<MissingStandby> standby(std::in_place, database);
  Caller caller(database.server());
  caller.run("SET client_min_messages = error");
  auto writing = std::async(std::launch::async, [&] {
    return thrown_by([&] { lock->with_fence(caller.native(), [&] { caller.run("INSERT INTO written VALUES (1)"); }); });
  });
  standby->cancel_wait();
  const auto thrown = writing.get();
  CHECK_MESSAGE(thrown.fault == Fault::in_doubt, thrown.text);
  CHECK(thrown.names("standby"));
  CHECK(caller.number("SELECT count(*) FROM written") == 1);  // here it is committed
  CHECK(caller.text("SHOW client_min_messages") == "error");
  CHECK(lock->valid());
}
