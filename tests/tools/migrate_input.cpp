// What dlock-migrate does with wrong input, and that it keeps secrets.
#include "migrate.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <iterator>

using namespace dlock;
using namespace dlock::test;

namespace {

// One line that names the value, and exit 2.
void check_refused(const Ran& ran, std::string_view value) {
  CHECK_MESSAGE(ran.code == 2, ran.out);
  CHECK_MESSAGE(ran.lines() == 1, ran.out);
  CHECK_MESSAGE(ran.says(value), ran.out);
}

// The URL of an account with a password, where it has a place for one.
std::string with_secret(const std::string& url, const std::string& secret) {
  const auto slashes = url.find("://");
  if (slashes == std::string::npos) return url + "&password=" + secret;
  const auto begin = slashes + 3;
  const auto at = url.find('@', begin);
  return url.substr(0, begin) + "somebody:" + secret + url.substr(at == std::string::npos ? begin : at);
}

}  // namespace

TEST_CASE("wrong input is one line that names the value, and exit 2") {
  Database database;
  const auto url = database.url();
  check_refused(migrate({"up", "-u", "nonsense:x"}), "nonsense");
  check_refused(migrate({"up", "-u", "no scheme"}), "no scheme");
  check_refused(migrate({"up", "-u", ""}), "\"\"");
  check_refused(migrate({"up", "-u", url + "?unheard_of=1"}), "unheard_of");
  check_refused(migrate({"up"}), "DLOCK_MIGRATE_URL");
  check_refused(migrate({"up", "-e", "NOT_THERE_AT_ALL"}), "NOT_THERE_AT_ALL");
  check_refused(migrate({"up"}, {"DLOCK_URL="}), "DLOCK_URL");
  check_refused(migrate({"frobnicate", "-u", url}), "frobnicate");
  check_refused(migrate({"-u", url}), "up, down, baseline");
  check_refused(migrate({"up", "-u", url, "--frobnicate"}), "--frobnicate");
  check_refused(migrate({"up", "-u", url, "extra"}), "extra");
  check_refused(migrate({"up", "-u", url, "--", "extra"}), "--");
  check_refused(migrate({"down", "-u", url}), "--to");
  for (const std::string value : {"x", "-1", "1.5", "", "99999999999999999999", "0x1"}) {
    CAPTURE(value);
    check_refused(migrate({"up", "-u", url, "--to=" + value}), "--to");
  }
  check_refused(migrate({"up", "-u", url, "--to", "900"}), "900");
  for (const std::string value : {"5x", "s", "", "-1", "1..2", "1e3", "999999999999999999999d", " 1"}) {
    CAPTURE(value);
    check_refused(migrate({"up", "-u", url, "--lock-timeout=" + value}), "--lock-timeout");
  }
  check_refused(migrate({"up", "-u", url, "--connect-timeout", "0"}), "--connect-timeout");
  for (const auto& value : std::vector<std::string>{"9lives", "a-b", "a\"b", "ü", std::string(49, 'a')}) {
    CAPTURE(value);
    check_refused(migrate({"up", "-u", url, "--table", value}), "--table");
    check_refused(migrate({"up", "-u", url, "--history-table", value}), "--history-table");
    check_refused(migrate({"up", "-u", url, "--schema", value}), "--schema");
  }
  for (const std::string taken : {"resource_lock", "resource_lock_status", "resource_lock_waiter",
                                  "resource_lock_holder", "resource_lock_history"})
    check_refused(migrate({"up", "-u", url, "--history-table", taken}), taken + "\" has the name of another table");
  check_refused(migrate({"up", "-u", url, "--schema", "not_there"}), "not_there");
  check_refused(migrate({"up", "-u", url, "--format", "xml"}), "xml");
  check_refused(migrate({"up", "-u", url, "-q", "-v"}), "--quiet");
  check_refused(migrate({"sql", "--dialect", "klingon"}), "klingon");
  check_refused(migrate({"sql", "--dialect", std::string(opener().name), "--from", "7"}), "7");
  check_refused(migrate({"up", "-u", url, "--password-file", "/not/there"}), "/not/there");
  check_refused(migrate({"up", "-u", url, "--password-file", "/"}), "\"/\" cannot be read");
  check_refused(migrate({"up", "-u", url, "-W"}), "-W");
  check_refused(migrate({"up", "-u", url, "-W", "--password-stdin"}), "--password-stdin");
}

TEST_CASE("durations are written with their unit, or as seconds, with fractions") {
  Database database;
  for (const std::string value : {"500ms", "30s", "5m", "2h", "1d", "7", "0.5", "1.5m", ".5s", "250us", "0"})
    CHECK_MESSAGE(migrate({"up", "-q", "-u", database.url(), "--lock-timeout", value}).code == 0, value);
}

TEST_CASE("a password is in no message, and not in the list of processes") {
  const auto test_database = opener().test_database();
  const std::string secret = "Xq7%21secret";
  const std::string shown = "secret";
  for (const auto& url :
       {with_secret(test_database->url() + "?unheard_of=1", secret), "nonsense://me:" + secret + "@x/y",
        "nonsense://me:a/b" + secret + "@x", test_database->url() + "?password=" + secret + "&unheard_of=1"})
    for (const std::string format : {"text", "json"}) {
      const auto ran = migrate({"check", "-v", "--format", format, "-u", url});
      CHECK(ran.code != 0);
      CHECK_MESSAGE(!ran.says(shown), ran.out);
    }

  // Waits for a table that never comes; its arguments are looked at meanwhile.
  auto waiting = migrate_child({"check", "--wait", "60", "-v", "--url=" + test_database->url()});
  REQUIRE(waiting.line());
  std::ifstream file("/proc/" + std::to_string(waiting.pid()) + "/cmdline", std::ios::binary);
  const std::string title((std::istreambuf_iterator<char>(file)), {});
  CHECK(title.find("--wait") != std::string::npos);
  CHECK_MESSAGE(title.find(test_database->url()) == std::string::npos, title);
  CHECK_MESSAGE(title.find("--url=*") != std::string::npos, title);
  waiting.signal(SIGTERM);
  CHECK(finish(waiting).code == 128 + SIGTERM);
}

TEST_CASE("a signal while waiting for another migrator ends with 128 + its number and leaves nothing behind") {
  for (const int signal : {SIGINT, SIGTERM}) {
    Database database;
    database.admin().run(
        "UPDATE resource_lock_schema_history SET state = 'running', owner = 'somebody', lease_until = "
        "9000000000000000");
    auto waiting = migrate_child({"up", "-v", "-u", database.url()});
    CHECK(waiting.line());  // it says whom it waits for
    waiting.signal(signal);
    CHECK(finish(waiting).code == 128 + signal);
    CHECK(database.admin().text("SELECT owner FROM resource_lock_schema_history") == "somebody");
  }
}
