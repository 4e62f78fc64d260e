// The promise that wrong arguments are refused in one line with the value and the rule, before anything
// is sent, and that no message shows a password.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

void check_misuse(const Thrown& thrown, std::initializer_list<std::string_view> words) {
  CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
  for (const auto word : words) CHECK_MESSAGE(thrown.names(word), thrown.text, " does not say ", word);
  CHECK(thrown.text.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("a lease below a millisecond or above ten years is refused with the value and the range") {
  Database database;
  auto engine = database.engine();
  for (const Duration lease :
       {Duration{0}, Duration{-1}, Duration{999}, Duration{24h * 3653}, Duration::max(), Duration::min()}) {
    const auto value = std::to_string(lease.count());
    check_misuse(thrown_by([&] { engine.try_lock("job", {.lease = lease}); }), {"lease", value});
    check_misuse(thrown_by([&] { engine.try_lock_for("job", 1s, {.lease = lease}); }), {"lease", value});
    check_misuse(thrown_by([&] {
                   engine.adopt("job", {Token{1}, std::string(32, 'a')}, {.lease = lease});
                 }),
                 {"lease", value});
    check_misuse(thrown_by([&] { database.engine({.lease = lease}); }), {"lease", value});
  }
  // The margin would eat it all.
  check_misuse(thrown_by([&] { engine.try_lock("job", {.lease = 1ms}); }), {"lease of 1000 us", "margin"});
  auto chosen = database.engine({.margin = 20ms});
  check_misuse(thrown_by([&] { chosen.try_lock("job", {.lease = 20ms}); }), {"20000 us", "EngineOptions::margin"});
  CHECK(engine.list().empty());
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  check_misuse(thrown_by([&] { lock->extend(0us); }), {"lease of extend() 0 us"});
  check_misuse(thrown_by([&] { lock->extend(Duration::max()); }), {"lease"});
  check_misuse(thrown_by([&] { lock->extend(1min, -1us); }), {"at_least of extend() -1 us"});
  check_misuse(thrown_by([&] { lock->extend(1ms); }), {"lease of 1000 us", "margin"});
  CHECK(lock->valid());
  const auto grant = lock->detach();
  const auto ends = database.admin().expires_at("job");
  check_misuse(thrown_by([&] { static_cast<void>(engine.renew("job", grant, 1ms)); }), {"lease of 1000 us", "margin"});
  check_misuse(thrown_by([&] { static_cast<void>(engine.adopt("job", grant, {.lease = 1ms})); }),
               {"lease of 1000 us", "margin"});
  CHECK(database.admin().expires_at("job") == ends);
  const auto adopted = engine.adopt("job", grant);
  CHECK(adopted);
}

TEST_CASE("other durations of a lock that make no sense are refused") {
  Database database;
  auto engine = database.engine();
  check_misuse(thrown_by([&] { engine.try_lock("job", {.at_least = -1us}); }), {"at_least", "-1"});
  check_misuse(thrown_by([&] { engine.try_lock("job", {.at_least = Duration::max()}); }), {"at_least"});
  check_misuse(thrown_by([&] { engine.try_lock("job", {.renew_every = 0us}); }), {"renew_every", "0"});
  check_misuse(thrown_by([&] { engine.try_lock_for("job", -1us); }), {"wait", "-1"});
  check_misuse(thrown_by([&] { engine.wait_free("job", -1us); }), {"wait", "-1"});
}

TEST_CASE("waits of any length are allowed: the longest is for ever") {
  Database database;
  auto engine = database.engine();
  CHECK(engine.try_lock_for("job", Duration::max()).has_value());
  CHECK(engine.try_lock_for("job", std::chrono::hours{24 * 365 * 1000}).has_value());
  CHECK(engine.try_lock_for("job", std::chrono::hours::max()).has_value());
  CHECK(engine.wait_free("job", std::chrono::years::max()));
}

TEST_CASE("a duration that is too long for microseconds is told by the rule that it breaks, never as a negative one") {
  Database database;
  auto engine = database.engine();
  const auto longest = std::to_string(Duration::max().count());
  check_misuse(thrown_by([&] { engine.try_lock("job", {.lease = std::chrono::hours::max()}); }), {"lease", longest});
  check_misuse(thrown_by([&] { engine.try_lock("job", {.at_least = std::chrono::hours::max()}); }),
               {"at_least", longest});
  check_misuse(thrown_by([&] { database.engine({.lease = std::chrono::hours::max()}); }), {"lease", longest});
  check_misuse(thrown_by([&] { engine.try_lock_for("job", std::chrono::hours::min()); }), {"wait", "-"});
  check_misuse(thrown_by([&] { database.engine({.reaper = {.grace = std::chrono::hours::max()}}); }),
               {"grace", longest});
  // These are for ever.
  auto deaf = database.engine({.polling = {.first = std::chrono::hours::max(), .longest = std::chrono::hours::max()}});
  CHECK(deaf.try_lock_for("job", std::chrono::hours::max()).has_value());
  check_misuse(thrown_by([&] { engine.try_lock("job", {.max_hold = std::chrono::hours::max()}); }),
               {"max_hold", longest});
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  check_misuse(thrown_by([&] { lock->extend(std::chrono::hours::max()); }), {"lease", longest});
  CHECK(lock->valid());
}

TEST_CASE("options of an engine that make no sense are refused with their name and value") {
  const auto test_database = opener().test_database();
  const auto url = test_database->url();
  const auto engine = [&](const EngineOptions& options) { return thrown_by([&] { Engine opened(url, options); }); };
  check_misuse(engine({.table = "no-hyphen"}), {"table", "no-hyphen"});
  check_misuse(engine({.table = ""}), {"table"});
  check_misuse(engine({.table = std::string(49, 'x')}), {"table", "{0,47}"});
  check_misuse(engine({.table = "x; DROP TABLE y"}), {"table", "x; DROP TABLE y"});
  check_misuse(engine({.schema = "a\"b"}), {"schema"});
  check_misuse(engine({.history_table = "1st"}), {"history_table", "1st"});
  check_misuse(engine({.node = std::string(256, 'n')}), {"node", "255"});
  check_misuse(engine({.label = "\xFF"}), {"label", "UTF-8"});
  check_misuse(engine({.margin = -1us}), {"margin", "-1"});
  check_misuse(engine({.connections = 0}), {"connections", "0"});
  check_misuse(engine({.timeouts = {.connect = 0us}}), {"timeouts.connect", "0"});
  check_misuse(engine({.timeouts = {.request = -5us}}), {"timeouts.request", "-5"});
  check_misuse(engine({.timeouts = {.release = 0us}}), {"timeouts.release"});
  check_misuse(engine({.polling = {.longest = 0us}}), {"polling.longest"});
  check_misuse(engine({.reaper = {.grace = 0us}}), {"grace"});
  check_misuse(engine({.reaper = {.retention = 1s, .grace = 2s}}), {"retention", "grace"});
}

TEST_CASE("a batch of nothing is refused") {
  Database database;
  auto engine = database.engine();
  check_misuse(thrown_by([&] { engine.reap(0); }), {"batch", "0"});
}

TEST_CASE("a URL that cannot be right is refused with the rule, and without its password") {
  const std::string scheme(opener().name);
  const std::vector<std::string> wrong{
      "",
      "orders",
      "/var/lib/orders",
      "://",
      "oracle://app:s3cret@db/orders",
      scheme,
      scheme + "://app:s3cret@db:port/orders",
      scheme + "://app:s3cret@db:99999/orders",
      scheme + "://app:s3cret@db:5432/orders?nonsense=1",
      scheme + "://app:s3cret@db/orders?password=s3cret&nonsense=s3cret",
      scheme + "://app:s3cret@db/orders?prepared=maybe",
      scheme + "://app:s3cret@db/or%zzders",
      scheme + "://app:s3cret@db/or\nders",
      scheme + "://app:s3cret@db/orders%00",
      "s3cret@db",
      " " + scheme + "://app:s3cret@db/orders",
      scheme + "://app:s3/cret@db/orders",
      scheme + "://db/orders;password=s3cret",
      scheme + ":Data Source=orders;Password=s3cret",
      "host=db password=s3cret",
      "app:s3cret@db/orders",
      "Server=db;Pwd=s3cret;",
  };
  for (const auto& url : wrong) {
    const Stopwatch time;
    for (const auto& thrown :
         {thrown_by([&] { Engine engine(url); }), thrown_by([&] { Engine::install_schema(url); })}) {
      CHECK_MESSAGE(thrown.fault == Fault::misuse, url, ": ", thrown.text);
      if (url != "s3cret@db") CHECK_MESSAGE(!thrown.names("cret"), thrown.text);
      CHECK(thrown.text.find('\n') == std::string::npos);
    }
    CHECK(time.elapsed() < 2s * slowness());  // nobody was asked
  }
  const auto unknown = thrown_by([] { Engine engine("oracle://db/orders"); });
  CHECK(unknown.names("oracle"));
  CHECK(unknown.names(scheme));
  const auto maybe = thrown_by([&] { Engine engine(scheme + ":///orders?prepared=maybe"); });
  CHECK_MESSAGE(maybe.names("\"maybe\""), maybe.text);
  CHECK(maybe.names("prepared is on or off"));
  Database database;
  for (const auto* url : {"?prepared=on", "?prepared=off"}) CHECK(Engine(database.url() + url).try_lock("job"));
}
