// The promise that a command at a terminal behaves as it would without a lock.
#include "command.hpp"
#include "processes.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/paths.hpp"
#include "support/pty.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <sstream>
#include <tuple>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

const std::string dlock_command = path::tool("dlock");

std::vector<std::string> settings(const Database& database) {
  return {"DLOCK_URL=" + database.url(),
          "DLOCK_NAME=",
          "DLOCK_OWNER=",
          "DLOCK_OWNERS=",
          "PS1=ready> ",
          "ENV=",
          "HISTFILE="};
}

// A person's shell at a terminal. `line` is typed when the shell is ready.
struct Shell {
  explicit Shell(const Database& database)
      : pty({"/bin/bash", "--norc", "--noprofile", "--noediting", "-i"}, settings(database)) {
    REQUIRE(pty.shows("ready> "));
  }
  void line(const std::string& text) { pty.type(text + "\n"); }
  bool shows(std::string_view text) {
    const bool shown = pty.shows(text);
    if (!shown) MESSAGE(pty.screen());
    return shown;
  }
  // What a command printed as "pids $$ $PPID.": its own number, and its guardian's.
  std::pair<pid_t, pid_t> pids() {
    REQUIRE(shows("pids "));
    const auto begin = pty.screen().rfind("pids ") + 5;
    REQUIRE(shows("."));
    std::istringstream numbers(pty.screen().substr(begin));
    std::pair<pid_t, pid_t> both;
    numbers >> both.first >> both.second;
    return both;
  }
  void leave() {
    line("exit 0");
    CHECK(pty.wait() == 0);
  }
  Pty pty;
};

}  // namespace

TEST_CASE("a command reads from the terminal, and the shell has it again afterwards") {
  Database database;
  Shell shell(database);
  shell.line(dlock_command + " run job -- sh -c 'echo begun; read word; echo got-$word'; echo code-$?");
  REQUIRE(shell.shows("begun"));
  shell.line("hello");
  CHECK(shell.shows("got-hello"));
  CHECK(shell.shows("code-0"));
  shell.line("echo still-$((40 + 2))");
  CHECK(shell.shows("still-42"));
  shell.leave();
}

TEST_CASE("^C ends the command, not the run before it has given the lock back; ^D ends its input") {
  Database database;
  Shell shell(database);
  shell.line(dlock_command + " run job -- cat");
  shell.line("a line");
  REQUIRE(shell.shows("a line"));
  shell.pty.type("\x03");
  REQUIRE(shell.shows("ready> "));
  shell.line("echo code-$?");
  CHECK(shell.shows("code-130"));
  CHECK(eventually([&] { return database.admin().held() == 0; }));
  shell.line(dlock_command +
             " run job -- sh -c 'trap \"echo caught; exit 7\" INT; echo begun; read word'; echo code-$?");
  REQUIRE(shell.shows("begun"));
  shell.pty.type("\x03");
  CHECK(shell.shows("caught"));
  CHECK(shell.shows("code-7"));
  shell.line(dlock_command + " run job -- cat; echo code-$?");
  shell.line("another line");
  REQUIRE(shell.shows("another line"));
  shell.pty.type("\x04");
  CHECK(shell.shows("code-0"));
  shell.leave();
}

TEST_CASE("a terminal that was stopped by ^S keeps no command alive beyond --max-runtime, nor its lock") {
  Database database;
  Shell shell(database);
  shell.line(dlock_command + " run --max-runtime " + words(2s * slowness()) +
             " -k 200ms --ttl 5m job -- sh -c 'echo begun; exec sleep 60'; echo code-$?");
  REQUIRE(shell.shows("begun"));
  CHECK(database.admin().held() == 1);
  shell.pty.type("\x13");
  CHECK(eventually([&] { return database.admin().held() == 0; }, 15s * slowness()));
  shell.pty.type("\x11");
  CHECK(shell.shows("--max-runtime"));
  CHECK(shell.shows("code-124"));
  shell.leave();
}

TEST_CASE("^C that ends the command ends the script around the run, too, as it would without a lock") {
  Database database;
  Shell shell(database);
  for (const std::string script :
       {"%; echo next", "for i in 1 2 3; do %; done; echo next", "% </dev/null; echo next"}) {
    INFO(script);
    const auto at = script.find('%');
    const auto body = script.substr(0, at) + dlock_command + " run job -- sh -c \"echo begun; exec sleep 60\"" +
                      script.substr(at + 1);
    shell.line("bash -c '" + body + "'");
    REQUIRE(shell.shows("begun"));
    shell.pty.type("\x03");
    REQUIRE(shell.shows("ready> "));
    shell.line("echo code-$?");
    CHECK(shell.shows("code-130"));
    CHECK(shell.pty.screen().find("next") == std::string::npos);
    CHECK(eventually([&] { return database.admin().held() == 0; }));
  }
  shell.leave();
}

TEST_CASE("a command that gives way to an INT of the run itself ends nothing around it") {
  Database database;
  auto engine = database.engine();
  Shell shell(database);
  shell.line("bash -c '" + dlock_command +
             " run --yield-signal INT job -- sh -c \"echo begun; exec sleep 60\"; echo next-$?'");
  REQUIRE(shell.shows("begun"));
  CHECK(engine.try_lock_for("job", far_longer()).has_value());
  CHECK(shell.shows("next-130"));
  shell.leave();
}

TEST_CASE("what is left of a command that was told to end can be stopped, and can read from the terminal") {
  Database database;
  Shell shell(database);
  shell.line(dlock_command +
             " run job -- bash -c '(trap \"read word </dev/tty; echo got-\\$word; exit\" TERM; "
             "echo pids $BASHPID $PPID.; while :; do sleep 0.02; done) & wait'");
  const auto [rest, guardian] = shell.pids();
  const auto run = parent_of(guardian), command = parent_of(rest);
  REQUIRE((run > 1 && command > 1));
  ::kill(run, SIGTERM);
  REQUIRE(eventually([&] { return !running(command); }));
  REQUIRE(shell.shows("is waited for"));  // before that a ^Z may come while who has the terminal changes
  shell.pty.type("\x1a");
  REQUIRE(shell.shows("Stopped"));
  CHECK(eventually([&] { return stopped(rest); }));
  shell.line("fg");
  REQUIRE(eventually([&] { return !stopped(rest); }));
  shell.line("hello");
  CHECK(shell.shows("got-hello"));
  REQUIRE(shell.shows("ready> "));
  shell.line("echo code-$?");
  CHECK(shell.shows("code-143"));
  CHECK(database.admin().held() == 0);
  shell.leave();
}

TEST_CASE("after a command that was killed the terminal is as it was, whichever of its groups had it") {
  Database database;
  auto engine = database.engine();
  Shell shell(database);
  shell.line("sh -c '" + dlock_command + " run --ttl " + words(3s * slowness()) +
             " -k 0.2s job -- bash --norc -i -c \"set -m; stty -icanon -echo; (trap : TERM; echo pid-$((40 + 2)); "
             "sleep 60; sleep 60); :\"; "
             "stty -a | grep -o -- \"-*icanon\"; read word; echo got-$word'");
  REQUIRE(shell.shows("pid-42"));
  CHECK(engine.force_release("job", engine.inspect("job")->token));
  REQUIRE(shell.shows("icanon"));
  CHECK(shell.pty.screen().find("-icanon\r\n") == std::string::npos);
  shell.line("hello");
  CHECK(shell.shows("got-hello"));
  shell.leave();
}

TEST_CASE("^Z stops the command and the run, fg goes on with both") {
  Database database;
  Shell shell(database);
  shell.line(dlock_command + " run job -- sh -c 'echo pids $$ $PPID.; exec cat'; echo code-$?");
  const auto [command, guardian] = shell.pids();
  shell.line("before");
  REQUIRE(shell.shows("before"));
  shell.pty.type("\x1a");
  REQUIRE(shell.shows("Stopped"));
  CHECK(eventually([&] { return stopped(command); }));
  CHECK(running(guardian));
  CHECK_FALSE(stopped(guardian));
  shell.line("echo the-shell-$((40 + 2))");
  CHECK(shell.shows("the-shell-42"));
  shell.line("fg");
  CHECK(eventually([&] { return !stopped(command); }));
  shell.line("after");
  CHECK(shell.shows("after"));
  shell.pty.type("\x04");
  CHECK(eventually([&] { return database.admin().held() == 0; }));
  shell.leave();
}

TEST_CASE("^Z for longer than the lease: the command is killed where it stands, and fg ends with 79") {
  Database database;
  auto engine = database.engine();
  Shell shell(database);
  shell.line(dlock_command + " run --ttl " + words(3s * slowness()) + " job -- sh -c 'echo pids $$ $PPID.; exec cat'");
  const auto command = shell.pids().first;
  shell.pty.type("\x1a");
  REQUIRE(shell.shows("Stopped"));
  CHECK_FALSE(outlives_its_lease(engine, command));
  REQUIRE(eventually([&] { return engine.inspect("job")->state == State::expired; }));
  shell.line("fg");
  CHECK(shell.shows("could not be renewed in time"));
  shell.line("echo code-$?");
  CHECK(shell.shows("code-79"));
  shell.leave();
  free_by_force(engine, "job");
}

TEST_CASE("a command in the background that wants to read is stopped, and reads when it is put into the foreground") {
  Database database;
  Shell shell(database);
  shell.line(dlock_command + " run job -- sh -c 'echo pids $$ $PPID.; read word; echo got-$word' &");
  const auto [command, guardian] = shell.pids();
  const auto run = parent_of(guardian);
  // Before that fg would be too early for a run that is about to stop; and a shell that has not heard of it yet
  // continues nothing.
  REQUIRE(eventually([&, command = command] { return stopped(command) && stopped(run); }));
  shell.line("until jobs | grep Stopped; do :; done");
  REQUIRE(shell.shows("Stopped"));
  REQUIRE(database.engine().inspect("job"));
  shell.line("fg");
  shell.line("hello");
  CHECK(shell.shows("got-hello"));
  CHECK(eventually([&] { return database.admin().held() == 0; }));
  shell.leave();
}

TEST_CASE("a terminal that is closed ends the command by HUP, and nothing is left") {
  Database database;
  pid_t command = 0, guardian = 0;
  {
    Shell shell(database);
    shell.line(dlock_command + " run job -- sh -c 'echo pids $$ $PPID.; exec cat'");
    std::tie(command, guardian) = shell.pids();
  }
  CHECK(eventually([&] { return !running(command) && !running(guardian); }));
  CHECK(eventually([&] { return database.admin().held() == 0; }));
}

TEST_CASE("a command whose run is killed at a terminal is killed, and the shell has the terminal again") {
  Database database;
  Shell shell(database);
  shell.line(dlock_command +
             " run job -- sh -c 'echo pids $$ $PPID.; trap \"\" INT TERM HUP; while :; do sleep 0.05; done'");
  const auto [command, guardian] = shell.pids();
  const auto run = parent_of(guardian);
  REQUIRE(program_of(run) == "dlock");
  ::kill(run, SIGKILL);
  CHECK(eventually([&] { return !running(command) && !running(guardian); }));
  shell.line("echo still-$((40 + 2))");
  CHECK(shell.shows("still-42"));
  shell.leave();
  auto engine = database.engine();
  free_by_force(engine, "job");
}
