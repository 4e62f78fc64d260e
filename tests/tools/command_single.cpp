// What list, inspect, acquire, renew and release promise to scripts.
#include "command.hpp"
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/json.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::string first_line(const Ran& ran) { return ran.out.substr(0, ran.out.find('\n')); }

}  // namespace

TEST_CASE("a renewal says that the lease had been over, and that a shorter one opens the lock to nobody sooner") {
  Database database;
  const auto url = database.url();
  const auto both = first_line(dlock_tool(url, {"acquire", "-n", "deploy", "--ttl", "1h"}));
  const auto shorter = dlock_tool(url, {"renew", "deploy", "--token", both, "--ttl", "1m"});
  CHECK(shorter.code == 0);
  CHECK_MESSAGE(shorter.says("is not open to others sooner: the lease that it had ends in 59m"), shorter.out);
  const auto longer = dlock_tool(url, {"renew", "deploy", "--token", both, "--ttl", "2h"});
  CHECK_MESSAGE((longer.code == 0 && longer.out.empty()), longer.out);
  database.admin().expire("deploy");
  for (const auto& [token, ends] : {std::pair{both, true}, {both.substr(0, both.find(' ')), false}}) {
    const auto late = dlock_tool(url, {"renew", "deploy", "--token", token, "--ttl", "1h"});
    CHECK(late.code == 0);
    CHECK_MESSAGE(late.says("the lease of \"deploy\" had been over for "), late.out);
    if (ends) database.admin().expire("deploy");
  }
  CHECK(dlock_tool(url, {"release", "deploy", "--token", both}).code == 0);
}

TEST_CASE("acquire, renew and release go by the token, and by the owner where it is said") {
  Database database;
  const auto url = database.url();
  const auto taken =
      dlock_tool(url, {"acquire", "-n", "deploy", "--ttl", "5m", "--label", "ci", "--meta", "commit=4f2a"});
  REQUIRE(taken.code == 0);
  const auto both = first_line(taken);
  const auto token = both.substr(0, both.find(' ')), owner = both.substr(both.find(' ') + 1);
  CHECK(token == "1");
  CHECK(owner == database.admin().owner("deploy"));
  const std::string other(32, 'f');
  const auto busy = dlock_tool(url, {"acquire", "-n", "deploy", "--ttl", "5m"});
  CHECK(busy.code == 75);
  CHECK_MESSAGE(busy.says("is held by ci-"), busy.out);
  CHECK(dlock_tool(url, {"acquire", "-w", words(1s * slowness()), "deploy", "--ttl", "5m"}).code == 75);
  CHECK(dlock_tool(url, {"renew", "deploy", "--token", "99"}).code == 3);
  CHECK(dlock_tool(url, {"renew", "deploy", "--token", token, "--ttl", "1h"}).code == 0);
  auto engine = database.engine();
  const auto row = engine.inspect("deploy");
  REQUIRE(row);
  CHECK(row->lease == 1h);
  CHECK(row->left > 59min);
  CHECK(row->metadata == R"({"commit":"4f2a"})");
  CHECK(row->label == "ci");
  for (int i = 0; i < 2; ++i) {  // it stays the same grant
    CHECK(dlock_tool(url, {"renew", "deploy", "--token", token, "--owner", owner}).code == 0);
    CHECK(dlock_tool(url, {"renew", "deploy", "--token", both}).code == 0);
  }
  CHECK(dlock_tool(url, {"renew", "deploy", "--token", token, "--owner", other}).code == 3);
  CHECK(dlock_tool(url, {"release", "deploy", "--token", token + " " + other}).code == 3);
  CHECK(dlock_tool(url, {"release", "deploy", "--token", both, "--owner", other}).code == 2);
  CHECK(dlock_tool(url, {"release", "deploy", "--token", token, "--owner", "me"}).code == 2);
  CHECK(database.admin().owner("deploy") == owner);
  CHECK(dlock_tool(url, {"release", "deploy", "--token", "99"}).code == 3);
  CHECK(engine.inspect("deploy")->state == State::held);
  CHECK(dlock_tool(url, {"release", "deploy", "--token", token}).code == 0);
  CHECK(engine.inspect("deploy")->state == State::free);
  CHECK(dlock_tool(url, {"release", "deploy", "--token", token}).code == 3);
  CHECK(dlock_tool(url, {"release", "deploy", "--token", both}).code == 3);
  const auto again = first_line(dlock_tool(url, {"acquire", "-n", "deploy", "--ttl", "5m"}));
  CHECK(dlock_tool(url, {"release", "deploy", "--token", again}).code == 0);
}

TEST_CASE("a release that comes after the end of the lease says so, exits 3, and leaves the lock free") {
  Database database;
  auto engine = database.engine();
  const auto taken = dlock_tool(database.url(), {"acquire", "-n", "deploy", "--ttl", "5m"});
  REQUIRE(taken.code == 0);
  database.admin().expire("deploy");
  const auto late = dlock_tool(database.url(), {"release", "deploy", "--token", first_line(taken)});
  CHECK(late.code == 3);
  CHECK_MESSAGE(late.says("had been over for "), late.out);
  CHECK(engine.inspect("deploy")->state == State::free);
  const auto again = dlock_tool(database.url(), {"release", "deploy", "--token", first_line(taken)});
  CHECK(again.code == 3);
  CHECK_MESSAGE(again.says("it was released, or its lease is over"), again.out);
  const auto next = engine.try_lock("deploy");
  for (const auto& by :
       std::vector<std::vector<std::string>>{{"--token", "99"}, {"--force", "--expect-token", "99", "--yes"}}) {
    auto arguments = by;
    arguments.insert(arguments.begin(), {"release", "deploy"});
    const auto other = dlock_tool(database.url(), arguments);
    CHECK(other.code == 3);
    CHECK_MESSAGE(other.says("it is held under token " + std::to_string(number(next->token()))), other.out);
  }
  const auto absent = dlock_tool(database.url(), {"release", "deplyo", "--token", "1"});
  CHECK(absent.code == 3);
  CHECK_MESSAGE(absent.says("there is no lock \"deplyo\""), absent.out);
}

TEST_CASE("acquire prints what a shell or a program can read") {
  Database database;
  const auto env = dlock_tool(database.url(), {"acquire", "a", "--ttl", "1m", "--format", "env"});
  CHECK(env.says("DLOCK_TOKEN=1\nDLOCK_OWNER=" + database.admin().owner("a")));
  const auto json = Json::parse(dlock_tool(database.url(), {"acquire", "b", "--ttl", "1m", "--format", "json"}).out);
  CHECK(json["format_version"] == 1);
  CHECK(json["token"] == 1);
  CHECK(json["owner"].text().size() == 32);
  auto engine = database.engine();
  free_by_force(engine, "a");
  free_by_force(engine, "b");
}

TEST_CASE("list shows who holds what, by name, pattern and state, for people and for programs") {
  Database database;
  auto engine = database.engine();
  auto one = engine.try_lock("report/1", {.label = "web1"});
  auto two = engine.try_lock("report/2");
  auto other = engine.try_lock("other");
  REQUIRE((one && two && other));
  other->release();
  const auto text = dlock_tool(database.url(), {"list"});
  CHECK(text.code == 0);
  CHECK(first_line(text).starts_with("NAME"));
  CHECK_MESSAGE((text.says("report/1") && text.says("web1-") && !text.says("other")), text.out);
  CHECK(dlock_tool(database.url(), {"list", "--state", "free"}).says("other"));
  const auto listed = dlock_tool(database.url(), {"list", "report/*", "--state", "all", "--format", "json"});
  const auto json = Json::parse(listed.out);
  REQUIRE(json["locks"].size() == 2);
  CHECK(json["locks"][0]["name"] == "report/1");
  CHECK(json["locks"][0]["state"] == "held");
  CHECK(json["locks"][0]["owner"] == one->owner());
  for (const char* key : {"node", "label", "token", "held_us", "left_us", "entries", "waiters", "metadata"})
    CHECK(json["locks"][0].contains(key));
  one->release();
  two->release();
}

TEST_CASE("a lease until it is released is asked for by that word, and shown by it everywhere") {
  Database database;
  const auto url = database.url();
  const auto taken = dlock_tool(url, {"acquire", "-n", "freeze", "--ttl", "until-released"});
  REQUIRE(taken.code == 0);
  for (const auto& shown :
       {dlock_tool(url, {"list"}), dlock_tool(url, {"inspect", "freeze"}), dlock_tool(url, {"top", "-n", "1"})})
    CHECK_MESSAGE(shown.says("until released"), shown.out);
  const auto json = Json::parse(dlock_tool(url, {"list", "--format", "json"}).out);
  CHECK(json["locks"][0]["until_released"] == true);
  const auto busy = dlock_tool(url, {"acquire", "-n", "freeze", "--ttl", "5m"});
  CHECK(busy.code == 75);
  CHECK_MESSAGE(busy.says(", until it is released"), busy.out);
  CHECK(dlock_tool(url, {"renew", "freeze", "--token", first_line(taken), "--ttl", "1h"}).code == 0);
  CHECK(dlock_tool(url, {"renew", "freeze", "--token", first_line(taken), "--ttl", "until-released"}).code == 0);
  CHECK(dlock_tool(url, {"run", "-n", "other", "--ttl", "until-released", "--", "true"}).code == 125);
  CHECK(dlock_tool(url, {"release", "freeze", "--token", first_line(taken)}).code == 0);
}

TEST_CASE("inspect exits 3 unless the lock is held") {
  Database database;
  auto engine = database.engine();
  CHECK(dlock_tool(database.url(), {"inspect", "job"}).code == 3);
  auto lock = engine.try_lock("job", {.metadata = "because"});
  REQUIRE(lock);
  const auto held = dlock_tool(database.url(), {"inspect", "job"});
  CHECK(held.code == 0);
  CHECK_MESSAGE((held.says("because") && held.says(lock->owner())), held.out);
  lock->release();
  CHECK(dlock_tool(database.url(), {"inspect", "job"}).code == 3);
}

TEST_CASE("release by force needs the token that was shown, and a yes") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  const auto token = std::to_string(number(lock->token()));
  CHECK(dlock_tool(database.url(), {"release", "job", "--force"}).code == 2);
  CHECK(dlock_tool(database.url(), {"release", "job", "--force", "--expect-token", token}).code == 2);
  CHECK(dlock_tool(database.url(), {"release", "job", "--force", "--expect-token", "77", "--yes"}).code == 3);
  CHECK(engine.inspect("job")->state == State::held);
  const auto freed = dlock_tool(database.url(), {"release", "job", "--force", "--expect-token", token, "--yes"});
  CHECK(freed.code == 0);
  CHECK_MESSAGE(freed.says("is held by"), freed.out);
  CHECK(engine.inspect("job")->state == State::free);
  CHECK(lock->release() == Released::was_lost);
}

TEST_CASE("errors have the promised codes and one line") {
  Database database;
  const auto code = [&](std::vector<std::string> arguments) {
    const auto ran = dlock_tool(database.url(), std::move(arguments));
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
    return ran.code;
  };
  CHECK(code({"acquire", "job"}) == 2);
  CHECK(code({"acquire", "job", "--ttl", "0"}) == 2);
  CHECK(code({"acquire", "", "--ttl", "1m"}) == 2);
  CHECK(code({"renew", "job", "--token", "-1"}) == 2);
  CHECK(code({"renew", "job", "--token", "many"}) == 2);
  CHECK(code({"list", "--state", "odd"}) == 2);
  CHECK(code({"list", "--format", "xml"}) == 2);
  CHECK(code({"list", "a", "--", "x"}) == 2);
  CHECK(code({"frobnicate"}) == 2);
  CHECK(code({"list", "--table", "nowhere"}) == 7);
  CHECK(dlock_tool("", {"list"}).code == 2);
}

TEST_CASE("what begins with - is a name behind --, and a command behind -- has only run") {
  Database database;
  const auto url = database.url();
  const auto taken = dlock_tool(url, {"acquire", "--ttl", "5m", "--", "-x"});
  REQUIRE_MESSAGE(taken.code == 0, taken.out);
  CHECK(dlock_tool(url, {"inspect", "--", "-x"}).says("held"));
  CHECK(dlock_tool(url, {"list", "--", "-*"}).says("-x"));
  CHECK(dlock_tool(url, {"release", "--token", first_line(taken), "--", "-x"}).code == 0);
  const auto without_name = dlock_tool(url, {"inspect", "--"});
  CHECK(without_name.code == 2);
  CHECK_MESSAGE(without_name.says("NAME is required"), without_name.out);
  CHECK(dlock_tool(url, {"list", "a", "--", "b"}).code == 2);
  CHECK(dlock_tool(url, {"list", "--", "--format", "json"}).code == 2);
}

TEST_CASE("inspect says of a lock that its process grants again in memory that it is passed on there") {
  Database database;
  const auto tool = [&](const std::vector<std::string>& arguments) { return dlock_tool(database.url(), arguments); };
  auto engine = database.engine({.linger = 15min});
  const auto lock = engine.lock("job");
  CHECK_FALSE(tool({"inspect", "job"}).says("passed on"));
  CHECK(Json::parse(tool({"inspect", "job", "--format", "json"}).out)["passed_on"] == false);
  // Where nothing could be looked at for a while, as in a crowd, it does not linger: then once more.
  REQUIRE(eventually([&] {
    engine.lock("other", {.lease = 1h}).release();
    return engine.inspect("other")->state == State::held;
  }));
  const auto row = tool({"inspect", "other"});
  CHECK(row.code == 0);
  CHECK_MESSAGE(row.out.find("\npassed on: in its process, under tokens up to this one\n") != std::string::npos,
                row.out);
  CHECK(Json::parse(tool({"inspect", "other", "--format", "json"}).out)["passed_on"] == true);
}

TEST_CASE("of a lock that nobody holds, list and inspect tell the last run: who, when, and how it ended") {
  Database database;
  auto engine = database.engine({.node = "web3"});
  const auto tool = [&](std::vector<std::string> arguments) {
    return dlock_tool(database.url(), std::move(arguments));
  };
  auto lock = engine.try_lock("nightly", {.renew = false, .label = "report"});
  REQUIRE(lock);
  CHECK_FALSE(tool({"list"}).says("OUTCOME"));
  CHECK_FALSE(tool({"inspect", "nightly"}).says("last run"));
  CHECK(Json::parse(tool({"inspect", "nightly", "--format", "json"}).out)["last_run"].is_null());
  const auto forced = tool({"release", "nightly", "--force", "--yes", "--expect-token",
                            std::to_string(number(lock->token())), "--reason", "it hangs"});
  CHECK_MESSAGE(forced.code == 0, forced.out);
  const auto text = tool({"inspect", "nightly"});
  CHECK(text.code == 3);
  CHECK_MESSAGE(text.says("last run:  report (web3), forced: it hangs\nbegun:     20"), text.out);
  CHECK_MESSAGE(text.says(" UTC, after "), text.out);
  const auto list = tool({"list", "--state", "all"});
  CHECK_MESSAGE((list.says("LAST") && list.says("OUTCOME") && list.says("forced: it hangs")), list.out);
  const auto last = Json::parse(tool({"list", "--state", "free", "--format", "json"}).out)["locks"][0]["last_run"];
  CHECK(last["node"] == "web3");
  CHECK(last["label"] == "report");
  CHECK(last["outcome"] == "forced");
  CHECK(last["reason"] == "it hangs");
  CHECK(last["begun_us"] == database.admin().acquired_at("nightly").count());
  CHECK(last["ended_us"] == database.admin().expires_at("nightly").count());
  CHECK(tool({"release", "nightly", "--token", "1", "--reason", "x"}).code == 2);
}

TEST_CASE("of a name that another transaction has locked it is said so, and that nobody holds it") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("deploy").reset();
  Caller application(database.test_database());
  application.begin(database.test_database().beginnings().front());
  REQUIRE(engine.try_lock_in(application.native(), "deploy"));
  for (const std::vector<std::string>& asked : {std::vector<std::string>{"acquire", "-n", "deploy", "--ttl", "5m"},
                                                {"acquire", "-w", words(1s * slowness()), "deploy", "--ttl", "5m"}}) {
    const auto busy = dlock_tool(database.url(), asked);
    const bool server = opener().server_database != nullptr;
    CHECK(busy.code == (server ? 75 : 8));
    CHECK_MESSAGE(busy.says(server ? "locked by another transaction" : "though nobody holds it"), busy.out);
  }
  application.run("ROLLBACK");
}
