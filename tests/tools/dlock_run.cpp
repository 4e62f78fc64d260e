// This file knows what `dlock run` promises to scripts: the table of its exit codes, its streams, its environment.
#include "dlock.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <regex>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// A URL under which there is no database now.
std::string url_of_nothing(Place& place) {
  if (auto* server = dynamic_cast<ServerPlace*>(&place)) return server->url_at(Address{"127.0.0.1", 1});
  return place.url() + "/not/there";
}

nlohmann::json status_of(const std::string& path) { return nlohmann::json::parse(text_of(path)); }

}  // namespace

TEST_CASE("the command's own status is passed on") {
  const Desk desk;
  for (const int status : {0, 1, 7, 75, 125, 255})
    CHECK(desk.run({"run", "n", "--", "/bin/sh", "-c", "exit " + std::to_string(status)}).code == status);
  CHECK(desk.run({"run", "n", "--", "sh", "-c", "kill -TERM $$"}).code == 128 + SIGTERM);
  CHECK(desk.run({"run", "n", "--", "sh", "-c", "kill -KILL $$"}).code == 128 + SIGKILL);
}

TEST_CASE("a busy lock is 75, or what -E says, and the message tells who holds it") {
  Desk desk;
  auto engine = desk.database.engine();
  const auto lock = engine.lock("nightly");
  const std::string proof = "echo started";
  for (const auto& how : {Words{"-n"}, Words{"-w", "0"}, Words{"-w", "50ms"}}) {
    Words arguments{"run", "nightly", "-c", proof};
    arguments.insert(arguments.begin() + 1, how.begin(), how.end());
    const auto ran = desk.run(arguments);
    CHECK(ran.code == 75);
    CHECK_MESSAGE(std::regex_match(ran.out, std::regex("dlock: \"nightly\" is held by \\S+-[0-9a-f]{4} \\(token " +
                                                       std::to_string(number(lock.token())) +
                                                       "\\) for \\S+; lease ends in \\S+ unless renewed\n")),
                  ran.out);
  }
  CHECK(desk.run({"run", "-n", "-E", "3", "nightly", "-c", proof}).code == 3);
  const auto quiet = desk.run({"run", "-n", "-E", "0", "nightly", "-c", proof});
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
  const Stopwatch watch;
  CHECK(desk.run({"run", "-w", "300ms", "nightly", "-c", proof}).code == 75);
  CHECK(watch.elapsed() >= 300ms);
}

TEST_CASE("a waiting run starts as soon as the lock is free") {
  Desk desk;
  auto engine = desk.database.engine();
  std::optional<Lock> lock = engine.lock("n");
  auto waiting = desk.start({"run", "n", "--", "echo", "mine"});
  REQUIRE(eventually([&] { return reads_signals(waiting.pid()); }));
  lock.reset();
  CHECK(waiting.line() == "mine");
  CHECK(waiting.wait() == 0);
}

TEST_CASE("what cannot be executed is 126 or 127, and the lock is free again at once") {
  Desk desk;
  const TemporaryFolder folder;
  const auto file = folder.path() + "/file";
  std::ofstream(file) << "x";
  for (const auto& [command, code] : {std::pair{file, 126}, {folder.path(), 126}, {std::string("no-such-command"), 127}}) {
    const auto ran = desk.run({"run", "n", "--", command});
    CHECK(ran.code == code);
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
    CHECK_MESSAGE(ran.says(command), ran.out);
    CHECK(desk.database.admin().held() == 0);
  }
}

TEST_CASE("what keeps the command from being started is 125") {
  Desk desk;
  CHECK(desk.run({"run", "n"}).code == 125);
  CHECK(desk.run({"run", "n", "--ttl", "x", "--", "true"}).code == 125);
  CHECK(dlock({"run", "n", "--", "true"}, {"DLOCK_URL="}).code == 125);
  const auto bare = opener().place();
  const auto no_table = dlock({"run", "n", "--", "echo", "started"}, {"DLOCK_URL=" + bare->url()});
  CHECK(no_table.code == 125);
  CHECK_MESSAGE(no_table.says("dlock-migrate"), no_table.out);
  CHECK_FALSE(no_table.says("started"));

  Place& place = desk.database.place();
  const Words away{"DLOCK_URL=" + url_of_nothing(place)};
  const auto failed = dlock({"run", "--connect-timeout", "2s", "n", "--", "echo", "started"}, away);
  CHECK_MESSAGE(failed.code == 125, failed.out);
  CHECK_FALSE(failed.says("started"));
  const auto skipped = dlock({"run", "--connect-timeout", "2s", "--if-unavailable", "skip", "n", "--", "echo", "started"}, away);
  CHECK_MESSAGE(skipped.code == 75, skipped.out);
  CHECK_FALSE(skipped.says("started"));
  CHECK(dlock({"run", "--connect-timeout", "2s", "--if-unavailable", "skip", "-E", "0", "n", "--", "true"}, away).code == 0);
}

TEST_CASE("--max-runtime ends the command with 124, however deaf it is") {
  const Desk desk;
  CHECK(desk.run({"run", "--max-runtime", "100ms", "n", "--", "sleep", "60"}).code == 124);
  // A reader of this pipe sees its end only when the last of the group has ended.
  const auto ran = desk.run({"run", "--max-runtime", "100ms", "-k", "200ms", "n", "--", "sh", "-c",
                             "trap '' TERM; (while :; do sleep 0.05; done) & echo ready; wait; while :; do sleep 0.05; done"});
  CHECK(ran.code == 124);
  CHECK(ran.says("ready"));
}

TEST_CASE("a group that was told to end is killed though its first process has ended") {
  const Desk desk;
  const auto ran = desk.run({"run", "--max-runtime", "100ms", "-k", "200ms", "n", "--", "sh", "-c",
                             "(trap '' TERM; while :; do sleep 0.05; done) & sleep 60"});
  CHECK(ran.code == 124);
}

TEST_CASE("the command has dlock's streams, and dlock speaks on standard error only") {
  Desk desk;
  CHECK(script("echo hello | dlock run n -- cat", desk.environment).out == "hello\n");
  CHECK(script("echo hello | dlock run --no-stdin n -- cat", desk.environment).out.empty());
  CHECK(script("dlock run n -- sh -c 'echo out; echo err >&2' 2>/dev/null", desk.environment).out == "out\n");
  auto engine = desk.database.engine();
  const auto lock = engine.lock("n");
  CHECK(script("dlock run -n n -- true 2>/dev/null", desk.environment).out.empty());
  const auto json = script("dlock run --format json -n n -- true", desk.environment);
  CHECK(nlohmann::json::parse(json.out).at("error").at("code") == "busy");
}

TEST_CASE("-c is for $SHELL, or /bin/sh; everything else is executed directly") {
  const Desk desk;
  CHECK(desk.run({"run", "n", "-c", "exit 4"}).code == 4);
  CHECK(script("SHELL=/bin/echo dlock run n -c 'a b'", desk.environment).out == "-c a b\n");
  CHECK(script("SHELL= dlock run n -c 'echo $0'", desk.environment).out == "/bin/sh\n");
  CHECK(desk.run({"run", "n", "--", "echo", "$HOME", "a  b", "--", "-n"}).out == "$HOME a  b -- -n\n");
}

TEST_CASE("the command learns name, token, owner and ttl, whatever was set before") {
  Desk desk;
  auto environment = desk.environment;
  for (const char* name : {"DLOCK_NAME", "DLOCK_TOKEN", "DLOCK_TTL_MS"}) environment.push_back(std::string(name) + "=old");
  const auto ran = dlock({"run", "--ttl", "2.5s", "a b", "-c",
                          "echo \"$DLOCK_NAME|$DLOCK_TOKEN|$DLOCK_OWNER|$DLOCK_TTL_MS\"; env | grep -c ^DLOCK_TOKEN="},
                         environment);
  CHECK_MESSAGE(std::regex_match(ran.out, std::regex("a b\\|" + std::to_string(number(desk.database.admin().token("a b"))) +
                                                     "\\|[0-9a-f]{32}\\|2500\n1\n")),
                ran.out);
}

TEST_CASE("the command inherits neither descriptors nor a signal mask nor dispositions of dlock") {
  const Desk desk;
  const std::string look = "ls /proc/self/fd; grep -E '^Sig(Blk|Ign):' /proc/self/status";
  CHECK(script("dlock run n -- sh -c \"" + look + "\"", desk.environment).out ==
        script("sh -c \"" + look + "\"", desk.environment).out);
  CHECK(script("trap '' HUP; dlock run n -- grep SigIgn /proc/self/status", desk.environment).out ==
        script("trap '' HUP; grep SigIgn /proc/self/status", desk.environment).out);
}

TEST_CASE("a run nested in one for the same lock is an error instead of a wait for ever") {
  const Desk desk;
  for (const std::string how : {"", "-n ", "-w 60 "}) {
    const auto ran = script("dlock run n -- dlock run " + how + "n -- echo started", desk.environment);
    CHECK(ran.code == 125);
    CHECK_MESSAGE(ran.says("would deadlock"), ran.out);
    CHECK_FALSE(ran.says("started"));
  }
  CHECK(script("dlock run a -- dlock run b -- dlock run a -- true", desk.environment).code == 125);
  CHECK(script("dlock run a -- dlock run b -- dlock run c -- echo started", desk.environment).out == "started\n");
}

TEST_CASE("a run nested in one for the same name in another database is none of its business") {
  const Desk desk, other;
  CHECK(script("dlock run n -- env '" + other.environment.front() + "' dlock run n -- echo started", desk.environment).out ==
        "started\n");
}

TEST_CASE("--at-least keeps the lock closed after a short command") {
  Desk desk;
  CHECK(desk.run({"run", "-n", "--at-least", "1h", "n", "--", "true"}).code == 0);
  const auto second = desk.run({"run", "-n", "--at-least", "1h", "n", "--", "true"});
  CHECK(second.code == 75);
  CHECK_MESSAGE(second.says("\"n\" is closed for another 59m"), second.out);
  desk.database.admin().age("n", 2h);
  CHECK(desk.run({"run", "-n", "n", "--", "true"}).code == 0);
}

TEST_CASE("label and metadata are shown while the command runs") {
  const Desk desk;
  const auto ran = script("dlock run --label backup --meta ticket=42 --meta 'why=a=b' n -- dlock inspect n", desk.environment);
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.says("label:     backup"), ran.out);
  CHECK_MESSAGE(ran.says(R"({"ticket":"42","why":"a=b"})"), ran.out);
}

TEST_CASE("the status file tells apart what exit codes cannot") {
  Desk desk;
  const TemporaryFolder folder;
  const auto path = folder.path() + "/status";
  const auto after = [&](Words arguments) {
    arguments.insert(arguments.begin(), {"run", "--status-file", path});
    const auto code = desk.run(arguments).code;
    const auto json = status_of(path);
    CHECK(json.at("format_version") == 1);
    CHECK(json.at("exit_code") == code);
    return json;
  };
  auto json = after({"n", "-c", "exit 75"});
  CHECK(json.at("outcome") == "done");
  CHECK(json.at("child_status") == 75);
  CHECK(json.at("token") == number(desk.database.admin().token("n")));
  CHECK(json.at("held_ms").is_number_integer());
  CHECK(json.at("wait_ms").is_number_integer());
  json = after({"n", "-c", "kill -USR1 $$"});
  CHECK(json.at("outcome") == "signalled");
  CHECK(json.at("child_status") == 128 + SIGUSR1);
  CHECK(json.at("child_signal") == SIGUSR1);
  json = after({"--max-runtime", "50ms", "n", "--", "sleep", "60"});
  CHECK(json.at("outcome") == "max_runtime");
  json = after({"n", "--", "no-such-command"});
  CHECK(json.at("outcome") == "not_executed");
  CHECK(json.at("child_status").is_null());
  auto engine = desk.database.engine();
  const auto lock = engine.lock("n");
  json = after({"-w", "200ms", "n", "--", "true"});
  CHECK(json.at("outcome") == "not_obtained");
  CHECK(json.at("token").is_null());
  CHECK(json.at("wait_ms") >= 200);
  CHECK(desk.run({"run", "--status-file", folder.path() + "/not/there", "n", "--", "true"}).code == 125);
}
