// `dlock-bench` measures what it says, not how fast anything is.
#include "migrate.hpp"
#include "support/database.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"

#include <dlock/schema.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

using namespace dlock;
using namespace dlock::test;

namespace {

Ran bench(const std::string& url, std::vector<std::string> arguments,
          const char* script = R"(exec "$0" "$@" 2>&1 </dev/null)") {
  std::vector<std::string> command{"/bin/sh", "-c", script, path::tool("dlock-bench")};
  command.insert(command.end(), std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  Child child(command, {"DLOCK_URL=" + url});
  return finish(child);
}

// What it prints as JSON. A server that forgets is warned of on the other stream, which is shown where it fails.
Json measured(const std::string& url, std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const auto ran = bench(url, std::move(arguments), R"(
    errors=$(mktemp); trap 'rm "$errors"' EXIT
    "$0" "$@" 2>"$errors" </dev/null || { status=$?; cat "$errors"; exit $status; })");
  REQUIRE_MESSAGE(ran.code == 0, ran.out);
  return Json::parse(ran.out);
}

bool is_file(const Database& database) { return database.url().starts_with("sqlite:"); }

}  // namespace

TEST_CASE("a pair runs on the engine and on its raw peers, and says on what") {
  const Database database;
  const auto json = measured(database.url(), {"pair", "--against", "raw,naive", "--seconds", "200ms"});
  CHECK(json["format_version"] == 1);
  CHECK(json["scenario"] == "pair");
  CHECK(json["database"].text().find_first_of("0123456789") != std::string::npos);
  CHECK(json["durable"].is_truth());
  CHECK(json["settings"].size() >= 2);
  CHECK(json["threads"] == 1);
  CHECK(json["seconds"].number() == doctest::Approx(0.2));
  for (const char* contender : {"dlock", "raw", "naive"}) {
    CAPTURE(contender);
    CHECK(json[contender]["clients"] == 1);
    CHECK(json[contender]["pairs"] >= 3);  // one a turn at least
    CHECK(json[contender]["pairs_per_second"] > 0);
    CHECK(json[contender]["p50_us"] > 0);
    CHECK(json[contender]["p99_us"] >= json[contender]["p50_us"]);
    // Two updates and two commits, and whatever else the server writes. A file's log is not counted.
    if (is_file(database)) CHECK(json[contender]["log_bytes_per_pair"].is_null());
    else CHECK(json[contender]["log_bytes_per_pair"] > 100);
  }
  CHECK(json["ratio"] > 0);
  CHECK(json["ratios"]["raw"] == json["ratio"]);
  CHECK(json["ratios"]["naive"] > 0);
}

TEST_CASE("locks that linger run beside those that do not") {
  const Database database;
  const auto json = measured(database.url(), {"pair", "--linger", "1s", "--against", "naive", "--seconds", "200ms"});
  for (const char* contender : {"dlock", "linger", "naive"}) {
    CHECK(json[contender]["pairs"] >= 3);
    CHECK(json[contender]["clients"] == 1);
    CHECK(json[contender].contains("log_bytes_per_pair"));
  }
  for (const char* peer : {"linger", "naive"}) CHECK(json["ratios"][peer] > 0);
  // Most of them are granted without a commit.
  CHECK(json["linger"]["pairs"] > json["dlock"]["pairs"]);
}

TEST_CASE("a lock of the database's own stores nothing, and no log is counted for it") {
  const Database database;
  if (is_file(database)) return;  // it has none
  const std::string own = database.url().starts_with("postgresql") ? "advisory" : "getlock";
  const auto json = measured(database.url(), {"pair", "--against", own, "--seconds", "100ms"});
  CHECK(json["dlock"]["log_bytes_per_pair"] > 100);
  CHECK(json[own].contains("log_bytes_per_pair"));
  CHECK(json[own]["log_bytes_per_pair"].is_null());
}

TEST_CASE("many threads run on one engine, and on as many raw connections as they may have") {
  const Database database;
  const auto json = measured(database.url(), {"many", "--threads", "3", "--connections", "1", "--combine", "2",
                                              "--raw-connections", "2", "--against", "raw", "--seconds", "100ms"});
  CHECK(json["threads"] == 3);
  CHECK(json["dlock"]["clients"] == 3);
  CHECK(json["raw"]["clients"] == 2);
  CHECK(json["dlock"]["pairs"] >= 9);
  CHECK(json["raw"]["pairs"] >= 6);
  CHECK(json["ratio"] > 0);
}

TEST_CASE("many requests of one thread run beside the threads") {
  const Database database;
  const auto json = measured(database.url(), {"many", "--threads", "2", "--async", "3,20", "--seconds", "100ms"});
  CHECK(json["dlock"]["clients"] == 2);
  CHECK(json["async3"]["clients"] == 3);
  CHECK(json["async20"]["clients"] == 20);
  CHECK(json["async3"]["pairs"] >= 9);
  CHECK(json["async20"]["pairs"] >= 60);
  CHECK(json["ratios"]["async3"] > 0);
}

TEST_CASE("threads are shared out among engines in processes of their own, for names of their own and for one") {
  const Database database;
  for (const char* scenario : {"many", "hot"}) {
    const auto json = measured(database.url(), {scenario, "--threads", "3", "--engines", "1,2", "--seconds", "200ms"});
    for (const char* engines : {"engines1", "engines2"}) {
      CHECK(json[engines]["clients"] == 3);
      CHECK(json[engines]["pairs"] >= 9);
      CHECK(json["ratios"][engines] > 0);
    }
  }
}

TEST_CASE("the peers that users compare with take part unless others are named, or none") {
  const Database database;
  const auto usual = measured(database.url(), {"pair", "--seconds", "100ms"});
  for (const char* peer : {"raw", "naive"}) CHECK(usual["ratios"][peer] > 0);
  const auto alone = measured(database.url(), {"pair", "--against", "none", "--seconds", "100ms"});
  CHECK(alone["dlock"]["pairs"] >= 3);
  for (const char* peer : {"raw", "naive"}) CHECK_FALSE(alone.contains(peer));
}

TEST_CASE("a hot name goes from thread to thread, and a peer that cannot wait is alone with it") {
  const Database database;
  const auto json = measured(database.url(), {"hot", "--threads", "3", "--by-statement", "--seconds", "200ms"});
  CHECK(json["dlock"]["clients"] == 3);
  CHECK(json["by_statement"]["clients"] == 3);
  for (const char* peer : {"raw", "naive"}) CHECK(json[peer]["clients"] == 1);
  for (const char* contender : {"dlock", "by_statement"}) CHECK(json[contender]["pairs"] >= 9);
  CHECK(json["ratio"] > 0);
}

TEST_CASE("readers of one name are timed beside one client that is alone, and those who stay are renewed together") {
  const Database database;
  const auto json = measured(database.url(), {"shared", "--threads", "3", "--leases", "40", "--seconds", "200ms"});
  CHECK(json["scenario"] == "shared");
  CHECK(json["dlock"]["clients"] == 3);
  CHECK(json["dlock"]["pairs"] >= 9);
  CHECK(json["one"]["clients"] == 1);
  CHECK(json["one"]["pairs"] >= 3);
  CHECK(json["ratio"] > 0);
  CHECK(json["ratios"]["one"] == json["ratio"]);
  CHECK(json["renewal"]["leases"] == 40);
  CHECK(json["renewal"]["least_leases_in_a_round"] == 40);
  CHECK(json["renewal"]["dlock"]["times"] >= 1);
  schema::Options options;
  options.table = "dlock_bench_renew";
  CHECK_FALSE(schema::status(database.url(), options).table_exists);
  const auto without = measured(database.url(), {"shared", "--threads", "2", "--leases", "0", "--seconds", "100ms"});
  CHECK(without["renewal"].is_null());
}

TEST_CASE("those who wait for permits of one name are timed beside one client that is alone") {
  const Database database;
  const auto json = measured(database.url(), {"semaphore", "--threads", "5", "--limit", "2", "--seconds", "200ms"});
  CHECK(json["limit"] == 2);
  CHECK(json["dlock"]["clients"] == 5);
  CHECK(json["dlock"]["pairs"] >= 15);
  CHECK(json["one"]["clients"] == 1);
  CHECK(json["ratio"] > 0);
}

TEST_CASE("as many pairs begin as the rate says, however slow they are") {
  const Database database;
  const auto json = measured(database.url(), {"pair", "--against", "none", "--rate", "30", "--seconds", "320ms"});
  CHECK(json["rate"] == 30);
  CHECK(json["dlock"]["pairs"] == 12);  // two in each of six turns of 53 ms: at 0 and at 33 ms
}

TEST_CASE("a try on a busy lock is timed beside a select of its row") {
  const Database database;
  const auto json = measured(database.url(), {"busy", "--against", "raw", "--seconds", "100ms"});
  for (const char* contender : {"dlock", "select", "raw"}) CHECK(json[contender]["times"] >= 3);
  CHECK(json["ratio"] > 0);
  CHECK(json["rounds"] == 3);
  CHECK(json["log_bytes"] >= 0);
}

TEST_CASE("leases, rows and the reaper are measured in tables that are gone afterwards") {
  const Database database;
  const auto renew = measured(database.url(), {"renew", "--leases", "5", "--seconds", "1ms"});
  CHECK(renew["leases"] == 5);
  CHECK(renew["dlock"]["times"] >= 1);
  CHECK(renew["dlock"]["leases_per_second"] > 0);
  const auto scale =
      measured(database.url(), {"scale", "--rows", "2000", "--leases", "3", "--engines", "2", "--seconds", "40ms"});
  CHECK(scale["small"]["rows"] == 1000);
  CHECK(scale["large"]["rows"] == 2000);
  CHECK(scale["large"]["times"] >= 1);
  CHECK(scale["ratio"] > 0);
  const auto reap = measured(database.url(), {"reap", "--rows", "2000", "--seconds", "50ms"});
  CHECK(reap["removed"] == 2000);
  CHECK(reap["rows_per_second"] > 0);
  for (const char* table : {"dlock_bench_renew", "dlock_bench_small", "dlock_bench_large", "dlock_bench_reap"}) {
    schema::Options options;
    options.table = table;
    CAPTURE(table);
    CHECK_FALSE(schema::status(database.url(), options).table_exists);
  }
}

TEST_CASE("a result is drawn by gnuplot, and without it nothing is measured") {
  const Database database;
  const TemporaryFolder folder;
  const auto file = folder.path() + "/pair.svg";
  Child poor({"/bin/sh", "-c", "PATH=/nowhere exec \"$0\" \"$@\" 2>&1 </dev/null", path::tool("dlock-bench"), "pair",
              "--seconds", "10ms", "--plot", file},
             {"DLOCK_URL=" + database.url()});
  const auto refused = finish(poor);
  CHECK(refused.code == 2);
  CHECK_MESSAGE(refused.says("gnuplot-nox"), refused.out);
  CHECK(refused.lines() == 1);
  Child look({"/bin/sh", "-c", "command -v gnuplot"}, {});
  REQUIRE_MESSAGE(finish(look).code == 0, "the package gnuplot-nox is not installed");
  measured(database.url(), {"pair", "--seconds", "10ms", "--plot", file});
  std::ifstream drawn(file);
  std::string first;
  std::getline(drawn, first);
  CHECK_MESSAGE(first.starts_with("<?xml"), first);
}

TEST_CASE("a Redis server that cannot be reached is named") {
  const Database database;
  const auto ran =
      bench(database.url(), {"pair", "--seconds", "10ms", "--against", "redis", "--redis", "/no/such/socket"});
  CHECK(ran.code != 0);
  CHECK_MESSAGE(ran.says("redis"), ran.out);
  CHECK(ran.lines() == 1);
}

TEST_CASE("a handoff is timed for a waiter that listens and for one that polls, and no wait ends early") {
  const Database database;
  const auto json = measured(database.url(), {"handoff", "--seconds", "1ms"});
  for (const char* contender : {"listening", "polling"}) {
    CHECK(json[contender]["times"] == 1);
    CHECK(json[contender]["p50_us"] > 0);
  }
  CHECK(json["commit"]["times"] > 0);
  CHECK(json["deadline"]["p50_us"] >= 0);
  CHECK(json["stop"]["p50_us"] >= 0);
  CHECK(json["early"] == false);
}

TEST_CASE("everybody in a herd has the lock once") {
  const Database database;
  const auto json = measured(database.url(), {"herd", "--threads", "5", "--processes", "2", "--seconds", "200ms"});
  CHECK(json["threads"]["waiters"] == 5);
  CHECK(json["processes"]["waiters"] == 2);
  CHECK(json["held"]["connections"] > 0);
  CHECK(json["wrong"] == "");
}

TEST_CASE("a herd with tickets has the lock in their order") {
  const Database database;
  const auto json =
      measured(database.url(), {"herd", "--fifo", "--threads", "3", "--processes", "2", "--seconds", "200ms"});
  CHECK(json["fifo"] == true);
  CHECK(json["threads"]["waiters"] == 3);
  CHECK(json["processes"]["waiters"] == 2);
  CHECK(json["wrong"] == "");
}

TEST_CASE("a name that somebody holds is not measured, and wrong numbers are refused in one line") {
  const Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("dlock-bench/herd");
  REQUIRE(lock);
  const auto busy = bench(database.url(), {"herd", "--threads", "1", "--processes", "0", "--seconds", "1ms"});
  CHECK(busy.code == 1);
  CHECK_MESSAGE(busy.says("is held by somebody else"), busy.out);
  lock->release();
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"herd", "--threads", "-1"},
                                                    {"herd", "--processes", "many"},
                                                    {"herd", "--threads", "0", "--processes", "0"},
                                                    {"handoff", "--seconds", "0"},
                                                    {"pair", "--against", "else"},
                                                    {"pair", "--against", "raw,"},
                                                    {"busy", "--against", "naive"},
                                                    {"many", "--threads", "0"},
                                                    {"many", "--rate", "0"},
                                                    {"many", "--raw-connections", "0"},
                                                    {"many", "--combine", "0"},
                                                    {"many", "--combine", "1001"},
                                                    {"hot", "--combine", "1"},
                                                    {"shared", "--threads", "0"},
                                                    {"shared", "--leases", "-1"},
                                                    {"semaphore", "--limit", "0"},
                                                    {"semaphore", "--against", "raw"},
                                                    {"scale", "--rows", "-1"},
                                                    {"pair", "--plot", "result.png"},
                                                    {"pair", "--plot", "/no/such/folder/result.svg"}}) {
    const auto ran = bench(database.url(), arguments);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
  }
}
