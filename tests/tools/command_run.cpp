// What `dlock run` promises: the command's own status, its signals, and its end when the lock is lost.
#include "command.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <sstream>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

bool alive(pid_t pid) { return ::kill(pid, 0) == 0; }

// The process id that a command under the lock has printed first.
pid_t first_pid(Child& child) { return static_cast<pid_t>(std::stol(child.line().value_or("0"))); }

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the command's own exit status is passed on, and a signal as 128 + its number") {
  Database database;
  for (const int status : {0, 1, 7, 75, 79, 125, 255})
    CHECK(dlock_tool(database.url(), {"run", "job", "--", "sh", "-c", "exit " + std::to_string(status)}).code ==
          status);
  CHECK(dlock_tool(database.url(), {"run", "job", "--", "sh", "-c", "kill -9 $$"}).code == 128 + SIGKILL);
  CHECK(dlock_tool(database.url(), {"run", "job", "--", "sh", "-c", "kill -TERM $$"}).code == 128 + SIGTERM);
}

TEST_CASE("a command that cannot be executed ends with 126 or 127, and the lock is free at once") {
  Database database;
  CHECK(dlock_tool(database.url(), {"run", "job", "--", "/no/such/command"}).code == 127);
  CHECK(dlock_tool(database.url(), {"run", "job", "--", "/etc/passwd"}).code == 126);
  CHECK(dlock_tool(database.url(), {"run", "-n", "job", "--", "true"}).code == 0);
}

TEST_CASE("wrong arguments end with 125 and one line that names the value, before the command starts") {
  Database database;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"run", "job"}, "there is no command"},
      {{"run", "--", "true"}, "NAME"},
      {{"run", "--ttl", "500ms", "job", "--", "true"}, "500ms"},
      {{"run", "--ttl", "soon", "job", "--", "true"}, "soon"},
      {{"run", "--ttl", "5s", "--renew-every", "2s", "-k", "2s", "job", "--", "true"}, "the smallest that would do"},
      {{"run", "-E", "256", "job", "--", "true"}, "256"},
      {{"run", "--lost-signal", "NONE", "job", "--", "true"}, "--lost-signal \"NONE\" is no signal"},
      {{"run", "--yield-signal", "SIGNOW", "job", "--", "true"}, "--yield-signal \"SIGNOW\" is no signal"},
      {{"run", "--yield-signal", "0", "job", "--", "true"}, "--yield-signal \"0\" is not a whole number"},
      {{"run", "--meta", "novalue", "job", "--", "true"}, "novalue"},
      {{"run", "--if-unavailable", "maybe", "job", "--", "true"}, "maybe"},
      {{"run", "--no-such-option", "job", "--", "true"}, "no-such-option"},
      {{"run", std::string(256, 'x'), "--", "true"}, "256 bytes"},
      {{"run", "-u", "nosuch:x", "job", "--", "true"}, "nosuch"},
  };
  for (const auto& [arguments, word] : cases) {
    const auto ran = dlock_tool(database.url(), arguments);
    CHECK_MESSAGE(ran.code == 125, ran.out);
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
    CHECK_MESSAGE(ran.says(word), ran.out);
  }
}

TEST_CASE("a database that is away ends with 125, or is skipped if that was asked for; no password is printed") {
  const std::vector<std::string> away{"run", "-u", "sqlite:/no/such/folder/app.db", "job", "--", "true"};
  CHECK(dlock_tool("", away).code == 125);
  const std::string url = "postgresql://app:s3cret@127.0.0.1:1/app";
  const auto failed = dlock_tool("", {"run", "-u", url, "job", "--", "true"});
  CHECK(failed.code == 125);
  CHECK_FALSE(failed.says("s3cret"));
  const auto skipped = dlock_tool("", {"run", "--if-unavailable", "skip", "-E", "3", "-u", url, "job", "--", "true"});
  if (!failed.says("scheme")) CHECK(skipped.code == 3);  // where that database is built in
  CHECK_FALSE(skipped.says("s3cret"));
}

TEST_CASE("who comes second gets 75 or what -E says, and is told who holds it") {
  Database database;
  auto holder = dlock_at(database.url(), {"run", "--label", "web3", "job", "--", "sh", "-c", "echo $$; exec sleep 60"});
  REQUIRE(first_pid(holder) > 0);
  const auto refused = dlock_tool(database.url(), {"run", "-n", "job", "--", "true"});
  CHECK(refused.code == 75);
  CHECK_MESSAGE(refused.says("\"job\" is held by web3-"), refused.out);
  CHECK_MESSAGE(refused.says("unless renewed"), refused.out);
  CHECK(dlock_tool(database.url(), {"run", "-w", words(1s * slowness()), "job", "--", "true"}).code == 75);
  CHECK(dlock_tool(database.url(), {"run", "-n", "-E", "9", "job", "--", "true"}).code == 9);
  const auto quiet = dlock_tool(database.url(), {"run", "-n", "-E", "0", "job", "--", "true"});
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
  holder.signal(SIGTERM);
  CHECK(holder.wait() == 128 + SIGTERM);
}

TEST_CASE("standard input, output and the lock's own variables reach the command") {
  Database database;
  auto child =
      dlock_at(database.url(), {"run", "job", "--ttl", "9s", "--", "sh", "-c",
                                "read line; echo \"$line $DLOCK_NAME $DLOCK_TOKEN $DLOCK_TTL_MS ${#DLOCK_OWNER}\""});
  child.tell("hello");
  CHECK(child.line() == "hello job 1 9000 32");
  CHECK(child.wait() == 0);
  CHECK(dlock_tool(database.url(), {"run", "--no-stdin", "job", "--", "sh", "-c", "! read line"}).code == 0);
  CHECK(dlock_tool(database.url(), {"run", "-c", "exit 5", "job"}).code == 5);
}

TEST_CASE(
    "the command finds its job in DLOCK_JOB, and a run that is given one passes it on, or says what is wrong with it") {
  Database database;
  const auto url = database.url();
  const auto echo = "echo \"job: $DLOCK_JOB.\"";
  CHECK(dlock_tool(url, {"run", "job", "--", "sh", "-c", echo}).says("job: dlock-run/"));
  const auto inner = "exec '" + path::tool("dlock") + "' run inner -c '" + echo + "'";
  CHECK(dlock_tool(url, {"run", "job", "-c", "DLOCK_JOB='order 1'; export DLOCK_JOB; " + inner}).says("job: order 1."));
  const auto wrong = dlock_tool(url, {"run", "job", "-c", "DLOCK_JOB=" + std::string(256, 'x') + "; " + inner});
  CHECK(wrong.code == 125);
  CHECK_MESSAGE(wrong.says("DLOCK_JOB \"xxx"), wrong.out);
}

TEST_CASE("a run inside a run of the same name is refused instead of waiting for itself") {
  Database database;
  const auto ran = dlock_tool(database.url(), {"run", "job", "--", path::tool("dlock"), "run", "job", "--", "true"});
  CHECK(ran.code == 125);
  CHECK_MESSAGE(ran.says("would deadlock"), ran.out);
  CHECK(dlock_tool(database.url(), {"run", "job", "--", path::tool("dlock"), "run", "other", "--", "true"}).code == 0);
}

TEST_CASE("signals are passed on to the command's group, and nothing of it is left") {
  Database database;
  auto child = dlock_at(
      database.url(), {"run", "job", "--", "sh", "-c", "trap 'echo usr1' USR1; echo $$; while :; do sleep 0.02; done"});
  const auto pid = first_pid(child);
  REQUIRE(pid > 0);
  child.signal(SIGUSR1);
  auto line = child.line();  // the shell may say first that its sleep was hit, too
  while (line && *line != "usr1") line = child.line();
  CHECK(line == "usr1");
  child.signal(SIGTERM);
  CHECK(child.wait() == 128 + SIGTERM);
  CHECK_FALSE(alive(pid));
  CHECK(eventually([&] { return ::kill(-pid, 0) != 0; }));
}

TEST_CASE("a signal while waiting ends the wait at once, and the command never starts") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  TemporaryFolder folder;
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) {
    auto child = dlock_at(database.url(), {"run", "job", "--", "touch", folder.path() + "/started"});
    // It blocks its signals before it opens the database, so that it is ready once it has its mask.
    CHECK(eventually([&] {
      return contents("/proc/" + std::to_string(child.pid()) + "/cmdline").find("dlock\0run"s) != std::string::npos;
    }));
    CHECK(eventually([&] {
      const auto status = contents("/proc/" + std::to_string(child.pid()) + "/status");
      const auto at = status.find("SigBlk:");
      return at != std::string::npos && std::stoull(status.substr(at + 7), nullptr, 16) != 0;
    }));
    const Stopwatch time;
    child.signal(signal);
    const auto ran = finish(child);
    CHECK_MESSAGE(ran.code == 128 + signal, ran.out);
    MESSAGE("left after " << time.elapsed().count() << " us");
    CHECK(time.elapsed() < 4s * slowness());
  }
  lock->release();
  CHECK(contents(folder.path() + "/started").empty());
  CHECK(!std::ifstream(folder.path() + "/started"));
}

TEST_CASE("a lock released by force ends the command with the lost-signal, and the run with 79") {
  Database database;
  auto engine = database.engine();
  // Why it is lost is asked for within a second, which may be too little in a crowd: then once more.
  CHECK(eventually([&] {
    auto child = dlock_at(database.url(), {"run", "--renew-every", "200ms", "job", "--", "sh", "-c",
                                           "trap 'echo told; exit 3' TERM; echo $$; while :; do sleep 0.02; done"});
    const auto pid = first_pid(child);
    REQUIRE(pid > 0);
    REQUIRE(engine.force_release("job", engine.inspect("job")->token));
    std::string all;
    while (const auto line = child.line()) all += *line + "\n";
    CHECK_MESSAGE(all.find("told") != std::string::npos, all);
    CHECK(child.wait() == 79);
    CHECK_FALSE(alive(pid));
    const bool said = all.find("released by force") != std::string::npos;
    CHECK_MESSAGE((said || all.find("is no longer ours") != std::string::npos), all);
    return said;
  }));
}

TEST_CASE("a command that does not heed the lost-signal is killed") {
  Database database;
  auto engine = database.engine();
  auto child =
      dlock_at(database.url(), {"run", "--renew-every", "200ms", "-k", "200ms", "--lost-exit-code", "44", "job", "--",
                                "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 0.02; done"});
  const auto pid = first_pid(child);
  REQUIRE(pid > 0);
  REQUIRE(engine.force_release("job", engine.inspect("job")->token));
  CHECK(finish(child).code == 44);
  CHECK_FALSE(alive(pid));
}

TEST_CASE("a run that was frozen past its lease kills its command first when it goes on") {
  Database database;
  auto engine = database.engine();
  auto child = dlock_at(database.url(), {"run", "--ttl", words(3s * slowness()), "job", "--", "sh", "-c",
                                         "trap '' TERM; echo $$; while :; do sleep 0.02; done"});
  const auto pid = first_pid(child);
  REQUIRE(pid > 0);
  child.signal(SIGSTOP);
  REQUIRE(eventually([&] { return engine.inspect("job")->state == State::expired; }));
  child.signal(SIGCONT);
  CHECK(finish(child).code == 79);
  CHECK_FALSE(alive(pid));
}

TEST_CASE("a command that runs too long is ended, and the run with 124") {
  Database database;
  CHECK(dlock_tool(database.url(), {"run", "--max-runtime", "100ms", "job", "--", "sleep", "60"}).code == 124);
}

TEST_CASE("at-least keeps the lock closed after a short command") {
  Database database;
  CHECK(dlock_tool(database.url(), {"run", "-n", "--at-least", "1h", "job", "--", "true"}).code == 0);
  const auto closed = dlock_tool(database.url(), {"run", "-n", "job", "--", "true"});
  CHECK(closed.code == 75);
  CHECK_MESSAGE(closed.says("is closed for another"), closed.out);
}

TEST_CASE("the status file settles what the exit code leaves open") {
  Database database;
  TemporaryFolder folder;
  const auto path = folder.path() + "/status.json";
  const auto status = [&] { return Json::parse(contents(path)); };
  dlock_tool(database.url(), {"run", "--status-file", path, "job", "--", "sh", "-c", "exit 75"});
  CHECK(status()["outcome"] == "done");
  CHECK(status()["child_status"] == 75);
  CHECK(status()["token"] == 1);
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  dlock_tool(database.url(), {"run", "-n", "--status-file", path, "job", "--", "true"});
  CHECK(status()["outcome"] == "not_obtained");
  CHECK(status()["child_status"].is_null());
  lock->release();
}

TEST_CASE("after a run that was killed the name stays closed for the delay, and after one that has ended it is open") {
  Database database;
  const auto url = database.url();
  const auto try_run = [&] { return dlock_tool(url, {"run", "-n", "job", "--", "true"}); };
  CHECK(dlock_tool(url, {"run", "--ttl", "30s", "--delay-after-loss", "1h", "job", "--", "false"}).code == 1);
  CHECK(try_run().code == 0);
  auto killed = dlock_at(
      url, {"run", "--ttl", "30s", "--delay-after-loss", "1h", "job", "--", "sh", "-c", "echo $$; exec sleep 60"});
  const auto pid = first_pid(killed);
  REQUIRE(pid > 0);
  killed.signal(SIGKILL);
  CHECK(killed.wait() == killed_by(SIGKILL));
  CHECK(eventually([&] { return !alive(pid); }));
  database.admin().age("job", 31s);
  const auto closed = try_run();
  CHECK(closed.code == 75);
  CHECK_MESSAGE(closed.says("\"job\" is held by"), closed.out);
  database.admin().age("job", 55min);
  CHECK(try_run().code == 75);
  database.admin().age("job", 5min);
  CHECK(try_run().code == 0);
}

TEST_CASE("what was acquired with a delay and ran out is closed for it, and opened by a late release") {
  Database database;
  const auto url = database.url();
  const auto acquire = [&](const char* name) {
    return dlock_tool(url, {"acquire", "-n", name, "--ttl", "30s", "--delay-after-loss", "1h"});
  };
  const auto taken = acquire("job");
  REQUIRE_MESSAGE(taken.code == 0, taken.out);
  database.admin().age("job", 31s);
  CHECK(dlock_tool(url, {"run", "-n", "job", "--", "true"}).code == 75);
  const auto grant = taken.out.substr(0, taken.out.find('\n'));
  CHECK(dlock_tool(url, {"release", "job", "--token", grant}).code == 0);
  CHECK(dlock_tool(url, {"run", "-n", "job", "--", "true"}).code == 0);
  REQUIRE(acquire("left").code == 0);
  database.admin().age("left", 1h + 31s);
  CHECK(dlock_tool(url, {"run", "-n", "left", "--", "true"}).code == 0);
}

TEST_CASE("a delay that is no length, or cannot be kept, is refused with its value") {
  Database database;
  for (const std::string delay : {"soon", "-1s", "4000d"}) {
    const auto ran = dlock_tool(database.url(), {"run", "--delay-after-loss", delay, "job", "--", "true"});
    CHECK_MESSAGE(ran.code == 125, ran.out);
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
    CHECK_MESSAGE((ran.says("--delay-after-loss") && ran.says("\"" + delay + "\"")), ran.out);
  }
  const auto endless =
      dlock_tool(database.url(), {"acquire", "-n", "job", "--ttl", "until-released", "--delay-after-loss", "15s"});
  CHECK_MESSAGE(endless.code == 2, endless.out);
  CHECK_MESSAGE(endless.says("delay"), endless.out);
  CHECK_FALSE(database.admin().exists("job"));
}
