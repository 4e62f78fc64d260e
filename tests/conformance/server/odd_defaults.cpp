// The promise that whatever defaults a server gives its connections change nothing.
#include "api/open.hpp"
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <dlock/history.hpp>
#include <dlock/schema.hpp>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What this process writes to its standard error while one of these lives is kept from it, and counted.
class StandardError {
 public:
  ~StandardError() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(kept_);
  }
  StandardError() : before_(::dup(STDERR_FILENO)), kept_(::memfd_create("standard error", MFD_CLOEXEC)) {
    REQUIRE(before_ >= 0);
    REQUIRE(::dup2(kept_, STDERR_FILENO) >= 0);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

  long long bytes() const {
    struct stat about {};
    return ::fstat(kept_, &about) == 0 ? about.st_size : -1;
  }

 private:
  const int before_, kept_;
};

}  // namespace

TEST_CASE("on a server with odd defaults locks are granted, refused, renewed, taken over, released and reaped") {
  const auto server = opener().private_server();
  ServerDatabase database(server->test_database());
  database.server().use_odd_defaults();
  auto engine = database->engine({.reaper = {.retention = 50ms, .grace = 50ms}});
  auto other = database->engine();
  const std::string metadata = "it's \\ \"x\" \xC3\x89 \xF0\x9F\x98\x80 \\' -- ";
  const auto lease = 1500ms * slowness();
  auto lock = engine.try_lock("job", {.lease = lease, .metadata = metadata});
  REQUIRE(lock);
  Refusal refusal;
  CHECK_FALSE(other.try_lock("job", {}, &refusal));
  CHECK(refusal.holder.owner == lock->owner());
  CHECK(refusal.holder.metadata == metadata);
  const auto begun = database->admin().acquired_at("job");
  CHECK(database->admin().expires_at("job") >= begun + lease);
  CHECK(eventually([&] { return database->admin().expires_at("job") > begun + 2 * lease; }));
  CHECK(lock->valid());
  lock->extend(1h);
  CHECK(database->admin().expires_at("job") > begun + 59min);
  CHECK(lock->release() == Released::freed);

  auto gone = other.try_lock("job", {.at_least = 10min, .renew = false});
  REQUIRE(gone);
  const auto token = gone->detach().token;
  CHECK_FALSE(engine.try_lock("job"));
  database->admin().age("job", 1h);
  const auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(number(next->token()) == number(token) + 1);
  CHECK(database->admin().expires_at("job") >= database->admin().acquired_at("job") + 30s);
  CHECK(database->admin().reopens_at("job") == Duration{});

  CHECK(engine.try_lock("caf\xC3\xA9 '\\")->token() > Token{});
  CHECK(engine.list("caf*").size() == 1);
  database->admin().run("UPDATE resource_lock SET acquired_at = 0, expires_at = 0 WHERE owner IS NULL AND name <> ''");
  CHECK(eventually([&] { return engine.reap().removed == 1; }));
  CHECK(engine.list().size() == 1);
}

TEST_CASE(
    "whatever defaults sessions have, one migrates, locks, waits in line, fences and reaps without settings of its "
    "own") {
  const auto server = opener().private_server();
  auto test_database = server->test_database();
  test_database->use_odd_defaults_for_all();
  ServerDatabase database(std::move(test_database));
  const auto status = schema::check(database->url());
  CHECK_MESSAGE(status.state == schema::SchemaState::good, status.message);
  const EngineOptions options{.reaper = {.retention = 50ms, .grace = 50ms}, .prepared_statements = false};
  auto engine = database->engine(options);
  auto other = database->engine(options);
  auto lock = engine.try_lock("job", {.lease = 10min, .metadata = "it's \\ \"x\""});
  REQUIRE(lock);
  CHECK_FALSE(other.try_lock("job"));
  lock->extend(20min);
  auto waits = std::async(std::launch::async, [&] { return other.lock("job", {.fairness = Fairness::fifo}).token(); });
  CHECK(eventually([&] { return !engine.waiters().empty() && engine.waiters().front().ticket > 0; }));
  Caller caller(database.server());
  caller.begin(database.server().beginnings().front());
  lock->fence(caller.native());
  CHECK(engine.try_lock_in(caller.native(), "in a transaction", 1min).has_value());
  caller.run("COMMIT");
  const auto token = lock->token();
  CHECK(lock->release() == Released::freed);
  CHECK(waits.get() > token);
  auto entered = engine.try_lock("node", {.reentrance = Reentrance::node});
  REQUIRE(entered);
  CHECK(engine.try_lock("node", {.reentrance = Reentrance::node}).has_value());
  CHECK(engine.inspect("node")->entries == 1);
  entered.reset();
  in_parallel(8, [&](int i) { CHECK(engine.try_lock("together " + std::to_string(i)).has_value()); });
  CHECK(engine.try_lock("caf\xC3\xA9 '\\").has_value());
  CHECK(engine.list("caf\xC3\xA9*").size() == 1);
  database->admin().run("UPDATE resource_lock SET acquired_at = 0, expires_at = 0 WHERE owner IS NULL AND name <> ''");
  CHECK(engine.reap_all({.glob = "caf\xC3\xA9*"}).removed == 1);
  CHECK(engine.reap_all().removed >= 10);  // of 11, one of which may still be marked as waited for
}

TEST_CASE("leases are kept where transactions are serializable by default, also without settings of the session") {
  const auto server = opener().private_server();
  ServerDatabase database(server->test_database());
  database.server().use_odd_defaults_for_all();
  constexpr int engines = 3, leases = 30;
  EventLog news;
  std::vector<Engine> all;
  for (int i = 0; i < engines; ++i)
    all.push_back(database->engine({.prepared_statements = false, .observer = news.observer()}));
  std::vector<std::vector<Lock>> held(engines);
  in_parallel(engines, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    for (int n = 0; n < leases; ++n)
      held[at].push_back(all[at].lock("lease " + std::to_string(i * leases + n), renewed_often()));
  });
  const auto first = [&] {
    return database->admin().number("SELECT min(expires_at) FROM resource_lock WHERE owner IS NOT NULL");
  };
  for (int round = 0; round < 3; ++round) {
    const auto before = first();
    CHECK(eventually([&] { return first() > before; }));
  }
  for (const auto& locks : held)
    for (const auto& lock : locks) CHECK(lock.valid());
  for (const auto& item : news.of(Event::Kind::retried)) CHECK_MESSAGE(false, item.text);
  CHECK_FALSE(news.has(Event::Kind::lost));
}

TEST_CASE("on a server that is set to forget, the engine's own commits are durable") {
  const auto server = opener().private_server();
  ServerDatabase database(server->test_database());
  database.server().use_odd_defaults();
  const auto resolved = api::resolve(database->url(), {});
  const auto deadline = later(BootClock::now(), far_longer());
  const auto weaknesses = resolved.connector->connect(deadline)->weaknesses(deadline);
  for (const auto& weakness : weaknesses) CHECK_MESSAGE(false, weakness);
  EventLog news;
  { auto engine = database->engine({.observer = news.observer()}); }  // its destructor delivers what is to be told
  CHECK_FALSE(news.has(Event::Kind::weak_durability));
}

TEST_CASE("on a server with odd defaults the tables and the history are made, and are what they are elsewhere") {
  const auto server = opener().private_server();
  std::vector<std::string> lines;
  auto defaults = server->test_database()->defaults_in_the_way();
  defaults.insert(defaults.begin(), "");
  for (const auto& setting : defaults) {
    INFO("set: " << setting);
    const auto database = server->test_database();
    const auto url = database->url();
    if (!setting.empty()) database->set_default(setting, true);
    CHECK(schema::up(url).versions == std::vector{1});
    CHECK(schema::make_history(url).changed);
    const auto checked = schema::check(url);
    CHECK_MESSAGE(checked.state == schema::SchemaState::good, checked.message);
    CHECK_FALSE(schema::make_history(url).changed);
    const auto dump = schema::dump(url);
    if (setting.empty()) lines = dump.lines;
    CHECK(dump.lines == lines);
    if (!setting.empty()) database->set_default(setting, false);
    // What was made under it means the same: of each way to end there is a row.
    const EngineOptions patient{.timeouts = {.release = 30s}};
    Engine engine(url, patient), other(url, patient);
    engine.lock("job").release();
    const auto lost = engine.lock("job", {.renew = false});
    Admin(*database).run("UPDATE resource_lock SET expires_at = acquired_at WHERE name = 'job'");
    CHECK(other.try_lock("job").has_value());
    const auto history = engine.history("job");
    REQUIRE(history.size() == 3);
    CHECK(history[1].outcome == Outcome::taken_over);
  }
}

TEST_CASE("what a server notes in passing is not printed to the program's standard error") {
  const auto server = opener().private_server();
  ServerDatabase database(server->test_database());
  database.server().use_odd_defaults();
  const StandardError standard_error;
  {
    auto engine = database->engine();
    auto other = database->engine();
    auto lock = engine.try_lock("job");
    REQUIRE(lock);
    auto waiting = std::async(std::launch::async, [&] { return other.lock("job"); });
    const char* const wanted = "SELECT count(*) FROM resource_lock WHERE wanted_until > 0";
    CHECK(eventually([&] { return database->admin().number(wanted) == 1; }));
    CHECK(lock->release() == Released::freed);
    CHECK(waiting.get().release() == Released::freed);
  }
  CHECK(standard_error.bytes() == 0);
}
