// How a run ends, row by row: what was asked for, what the command did, what was done to it.
#include "command.hpp"
#include "processes.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "support/slowness.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

pid_t next_pid(Child& child) { return static_cast<pid_t>(std::stol(child.line().value_or("0"))); }

Json json_in(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

Ran run(const Database& database, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  return dlock_tool(database.url(), std::move(arguments));
}

}  // namespace

TEST_CASE("the smallest ttl that would do is named, does, and nothing below it") {
  Database database;
  const auto check_that_it_does = [&](const std::vector<std::string>& arguments) {
    Ran ran;
    eventually([&] {
      ran = run(database, arguments);
      return ran.code == 0 || (ran.code != 79 && slowness() == 1);  // 79, lost: this machine was too slow
    });
    CHECK_MESSAGE(ran.code == 0, ran.out);
  };
  struct {
    std::vector<std::string> rules;
    std::string refused, smallest, named;
  } const cases[]{
      {{"--renew-every", "2s", "-k", "2s"}, "6.4s", "6.5s", "6.5s"},    // 2 x 2 s + 2 s + 500 ms
      {{"-k", "10s"}, "30s", "35.3s", "35.3s"},                         // safety is ttl/20 from 10 s on, renewal ttl/3
      {{"--renew-every", "500ms", "-k", "0"}, "1.1s", "1.2s", "1.2s"},  // safety is ttl/6 below 3 s
  };
  for (const auto& [rules, refused, smallest, named] : cases) {
    auto arguments = rules;
    arguments.insert(arguments.end(), {"--ttl", refused, "job", "--", "true"});
    const auto ran = run(database, arguments);
    CHECK(ran.code == 125);
    CHECK_MESSAGE(ran.says("the smallest that would do is " + named), ran.out);
    arguments[rules.size() + 1] = smallest;
    check_that_it_does(arguments);
  }
  for (const auto* ttl : {"1s", "2s", "5s", "1m", "1d"}) check_that_it_does({"--ttl", ttl, "job", "--", "true"});
  CHECK(run(database, {"--ttl", "999ms", "job", "--", "true"}).code == 125);
  CHECK(run(database, {"--renew-every", "0", "job", "--", "true"}).code == 125);
  CHECK(run(database, {"--max-runtime", "0", "job", "--", "true"}).code == 125);
}

TEST_CASE("a standard input that is a pipe reaches the command, and its end does") {
  Database database;
  Child pipe({"/bin/sh", "-c", "echo x | \"$0\" run job -- cat", path::tool("dlock")},
             {"DLOCK_URL=" + database.url(), "DLOCK_OWNER=", "DLOCK_OWNERS="});
  CHECK(pipe.line() == "x");
  CHECK_FALSE(pipe.line());
  CHECK(pipe.wait() == 0);
}

TEST_CASE("TERM to a run leaves no process of its command") {
  Database database;
  auto child = dlock_at(database.url(), {"run", "job", "--", "sh", "-c", "echo $$; sleep 60; :"});
  const auto shell = next_pid(child);
  REQUIRE(eventually([&] { return children_of(shell).size() == 1; }));
  const auto sleeper = children_of(shell).front();
  child.signal(SIGTERM);
  CHECK(child.wait() == 128 + SIGTERM);
  CHECK_FALSE(running(shell));
  CHECK(eventually([&] { return !running(sleeper); }));
  CHECK(database.admin().held() == 0);
}

TEST_CASE("every signal that is passed on reaches the command, which starts with none blocked or ignored") {
  Database database;
  // Started by somebody who blocks nothing, but ignores some.
  Child child({"/bin/sh", "-c",
               "trap '' TERM USR1 USR2; exec \"$0\" run job -- sh -c '"
               "for s in HUP INT QUIT TERM USR1 USR2 WINCH CONT; do trap \"echo $s\" $s; done; "
               "grep -E \"Sig(Blk|Ign)\" /proc/self/status; "
               "echo ready; while :; do sleep 0.02; done' 2>&1",
               path::tool("dlock")},
              {"DLOCK_URL=" + database.url(), "DLOCK_OWNER=", "DLOCK_OWNERS="});
  for (const std::string title : {"SigBlk:", "SigIgn:"}) {
    const auto line = child.line().value_or("");
    REQUIRE_MESSAGE(line.starts_with(title), line);
    CHECK_MESSAGE((std::stoull(line.substr(title.size()), nullptr, 16) & 0x7fff'ffff) == 0, line);  // signals 1 to 31
  }
  REQUIRE(child.line() == "ready");
  const std::vector<std::pair<int, std::string>> signals{{SIGHUP, "HUP"},     {SIGINT, "INT"},   {SIGQUIT, "QUIT"},
                                                         {SIGTERM, "TERM"},   {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"},
                                                         {SIGWINCH, "WINCH"}, {SIGCONT, "CONT"}};
  for (const auto& [signal, name] : signals) {
    child.signal(signal);
    auto line = child.line();  // the shell may say that its sleep was hit, too
    while (line && *line != name) line = child.line();
    CHECK(line == name);
  }
  for (const auto process : children_of(child.pid())) ::kill(process, SIGKILL);  // the guardian
  CHECK(child.wait() == 128 + SIGKILL);
}

TEST_CASE("under nohup neither the run nor its command hears HUP, and in a script's background neither INT nor QUIT") {
  Database database;
  const std::pair<std::string, std::vector<int>> cases[]{{"HUP", {SIGHUP}}, {"INT QUIT", {SIGINT, SIGQUIT}}};
  for (const auto& [ignored, signals] : cases) {
    CAPTURE(ignored);
    auto child = Child(
        {"/bin/sh", "-c", "trap '' " + ignored + "; exec \"$0\" run job -- sh -c 'echo $$; read line; exit 4' 2>&1",
         path::tool("dlock")},
        {"DLOCK_URL=" + database.url(), "DLOCK_OWNER=", "DLOCK_OWNERS="});
    const auto command = next_pid(child);
    for (const int signal : signals) {
      child.signal(signal);
      ::kill(command, signal);
    }
    child.tell("go");
    CHECK(child.wait() == 4);
  }
}

TEST_CASE(
    "the lost-signal that was chosen is sent, also to a command that is stopped; its end by itself is 79 all the "
    "same") {
  Database database;
  auto engine = database.engine();
  auto child =
      dlock_at(database.url(), {"run", "--renew-every", "200ms", "--lost-signal", "usr2", "job", "--", "sh", "-c",
                                "trap 'echo told; exit 0' USR2; echo $$; kill -STOP $$; while :; do sleep 0.02; done"});
  const auto command = next_pid(child);
  REQUIRE(eventually([&] { return stopped(command); }));
  REQUIRE(engine.force_release("job", engine.inspect("job")->token));
  REQUIRE(engine.inspect("job")->owner.empty());
  const auto ran = finish(child);
  CHECK(ran.code == 79);
  CHECK_MESSAGE(ran.says("told"), ran.out);
}

TEST_CASE("a command is told once that somebody else waits, itself and not what it has started, and may end early") {
  Database database;
  auto child =
      dlock_at(database.url(), {"run", "--renew-every", "200ms", "--yield-signal", "usr1", "job", "--", "sh", "-c",
                                "trap 'echo told; told=1' USR1; "
                                "sh -c 'trap \"echo not me\" USR1; while :; do sleep 0.02; done' & "
                                "echo $$; while [ -z \"$told\" ]; do sleep 0.02; done; sleep 1; kill $!; exit 7"});
  REQUIRE(next_pid(child) > 0);
  auto next = dlock_at(database.url(), {"run", "--fifo", "-w", "2m", "job", "--", "echo", "mine"});
  const auto ran = finish(child);
  CHECK(ran.code == 7);
  CHECK_MESSAGE(ran.says("told"), ran.out);
  CHECK_MESSAGE(ran.out.find("told") == ran.out.rfind("told"), ran.out);
  CHECK_MESSAGE(!ran.says("not me"), ran.out);
  const auto after = finish(next);
  CHECK_MESSAGE(after.code == 0, after.out);
  CHECK_MESSAGE(after.says("mine"), after.out);
}

TEST_CASE("nothing is sent to a command that nobody else waits for, or that is not to be told") {
  Database database;
  auto engine = database.engine();
  const auto quiet = dlock_tool(database.url(), {"run", "--renew-every", "200ms", "--yield-signal", "USR1", "job", "--",
                                                 "sh", "-c", "sleep 1; echo done"});
  CHECK_MESSAGE(quiet.code == 0, quiet.out);
  const TemporaryFolder folder;
  const auto end = folder.path() + "/end";
  auto child = dlock_at(database.url(), {"run", "--renew-every", "200ms", "job", "--", "sh", "-c",
                                         "echo $$; while [ ! -e " + end + " ]; do sleep 0.05; done; echo done"});
  REQUIRE(next_pid(child) > 0);
  std::jthread waiting([&](const std::stop_token& stop) { static_cast<void>(engine.lock(stop, "job")); });
  REQUIRE(eventually([&] { return !engine.waiters("job").empty(); }));
  for (int renewals = 0; renewals < 2; ++renewals) {  // in which it is told that somebody waits
    const auto before = database.admin().expires_at("job");
    REQUIRE(eventually([&] { return database.admin().expires_at("job") > before; }));
  }
  std::ofstream{end};
  const auto ran = finish(child);
  CHECK_MESSAGE(ran.code == 0, ran.out);
  CHECK_MESSAGE(ran.says("done"), ran.out);
}

TEST_CASE(
    "a command that takes no notice of --max-runtime is killed with its group; the run ends with 124, the lock is "
    "free") {
  Database database;
  TemporaryFolder folder;
  const auto path = folder.path() + "/status.json";
  const auto most = words(2s * slowness());
  auto child =
      dlock_at(database.url(), {"run", "--max-runtime", most, "-k", "200ms", "--status-file", path, "job", "--", "sh",
                                "-c", "trap '' TERM; sleep 60 & echo $!; wait; while :; do sleep 0.02; done"});
  const auto sleeper = next_pid(child);
  CHECK(finish(child).code == 124);
  CHECK_FALSE(running(sleeper));
  CHECK(database.admin().held() == 0);
  CHECK(json_in(path)["outcome"] == "max_runtime");
  CHECK(json_in(path)["child_signal"] == SIGKILL);
}

TEST_CASE("a run that was told to end waits for what is left of the group before it gives the lock back") {
  Database database;
  const auto most = words(2s * slowness());
  auto child = dlock_at(database.url(),
                        {"run", "--max-runtime", most, "-k", "5s", "job", "--", "sh", "-c",
                         "sh -c 'trap \"sleep 0.3; exit 0\" TERM; echo $$; while :; do sleep 0.02; done' & wait"});
  const auto slow = next_pid(child);
  CHECK(finish(child).code == 124);
  CHECK_FALSE(running(slow));
}

TEST_CASE("what a TERM reaches beside the command keeps the lock until it has tidied up, as long as that takes") {
  Database database;
  const TemporaryFolder folder;
  const auto tidy = folder.path() + "/tidy";
  auto child =
      dlock_at(database.url(), {"run", "job", "--", "sh", "-c",
                                "sh -c 'trap \"until test -e " + tidy +
                                    "; do sleep 0.02; done; exit 0\" TERM; echo $$; while :; do sleep 0.02; done'; :"});
  const auto slow = next_pid(child);
  const auto shell = parent_of(slow);
  child.signal(SIGTERM);
  REQUIRE(eventually([&] { return !running(shell); }));  // it is gone at once
  for (int i = 0; i < 20; ++i) {
    CHECK(running(slow));
    CHECK(database.admin().held() == 1);
  }
  std::ofstream(tidy) << "now";
  CHECK(finish(child).code == 128 + SIGTERM);
  CHECK_FALSE(running(slow));
  CHECK(database.admin().held() == 0);
}

TEST_CASE("who was stopped hears the TERM, too, and who does not heed it is killed when the run has taken too long") {
  Database database;
  auto stopped = dlock_at(database.url(), {"run", "job", "--", "sh", "-c", "sleep 60 & kill -STOP $!; echo $!; wait"});
  const auto sleeper = next_pid(stopped);
  stopped.signal(SIGTERM);
  CHECK(finish(stopped).code == 128 + SIGTERM);
  CHECK_FALSE(running(sleeper));
  auto deaf = dlock_at(database.url(), {"run", "--max-runtime", words(2s * slowness()), "-k", "0.2s", "job", "--", "sh",
                                        "-c", "sh -c 'trap \"\" TERM; echo $$; exec sleep 60' & wait"});
  const auto ignoring = next_pid(deaf);
  deaf.signal(SIGTERM);
  CHECK(finish(deaf).code == 128 + SIGTERM);
  CHECK_FALSE(running(ignoring));
  CHECK(database.admin().held() == 0);
}

TEST_CASE("what ignores an INT, as a shell's background does, keeps no run that has ended by it") {
  Database database;
  auto child = dlock_at(
      database.url(),
      {"run", "job", "--", "bash", "-c",
       "sleep 60 >/dev/null 2>&1 & until grep -q \"SigIgn:.*6$\" /proc/$!/status; do :; done; echo $!; exec sleep 50"});
  const auto left = next_pid(child);
  child.signal(SIGINT);
  CHECK(finish(child).code == 128 + SIGINT);
  CHECK(running(left));
  ::kill(left, SIGKILL);
}

TEST_CASE("the status file tells every outcome") {
  Database database;
  auto engine = database.engine();
  TemporaryFolder folder;
  const auto path = folder.path() + "/status.json";
  const auto outcome = [&](int code, std::vector<std::string> arguments, const std::string& url = "") {
    arguments.insert(arguments.begin(), {"run", "--status-file", path});
    const auto ran = dlock_tool(url.empty() ? database.url() : url, arguments);
    const auto json = json_in(path);
    CHECK_MESSAGE(ran.code == code, ran.out);
    CHECK(json["exit_code"] == code);
    CHECK(json["format_version"] == 1);
    return json;
  };
  CHECK(outcome(0, {"job", "--", "true"})["outcome"] == "done");
  CHECK(outcome(137, {"job", "--", "sh", "-c", "kill -9 $$"})["outcome"] == "signalled");
  CHECK(outcome(137, {"job", "--", "sh", "-c", "exit 137"})["child_signal"].is_null());
  CHECK(outcome(127, {"job", "--", "/no/such/command"})["outcome"] == "not_executed");
  CHECK(outcome(126, {"job", "--", "/etc/passwd"})["outcome"] == "not_executed");
  CHECK(outcome(127, {"job", "--", "sh", "-c", "exit 127"})["outcome"] == "done");
  const std::string away = "sqlite:/no/such/folder/app.db";
  CHECK(outcome(125, {"-u", away, "job", "--", "true"})["outcome"] == "failed");
  CHECK(outcome(0, {"job", "--", "true"})["outcome"] == "done");
  CHECK(outcome(125, {"--renew-every", "20s", "job", "--", "true"})["outcome"] == "failed");
  CHECK(outcome(75, {"--if-unavailable", "skip", "-u", "postgresql://127.0.0.1:1/app", "job", "--",
                     "true"})["outcome"] == "unavailable");
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK(outcome(75, {"-n", "job", "--", "true"})["outcome"] == "not_obtained");
  CHECK(outcome(75, {"-w", "0", "job", "--", "true"})["outcome"] == "not_obtained");
  CHECK(outcome(255, {"-w", words(1s * slowness()), "-E", "255", "job", "--", "true"})["outcome"] == "not_obtained");
  CHECK(outcome(0, {"-n", "-E", "0", "job", "--", "true"})["token"].is_null());
  lock->release();
  auto child = dlock_at(database.url(), {"run", "--renew-every", "200ms", "--status-file", path, "job", "--", "sh",
                                         "-c", "echo $$; exec sleep 60"});
  REQUIRE(next_pid(child) > 0);
  REQUIRE(engine.force_release("job", engine.inspect("job")->token));
  CHECK(finish(child).code == 79);
  CHECK(json_in(path)["outcome"] == "lost");
  CHECK(json_in(path)["child_status"] == 128 + SIGTERM);
  CHECK(json_in(path)["held_ms"].is_number());
}

TEST_CASE(
    "two runs that share a status file leave the report of the last one, whole, in a file as it was; a link stays") {
  Database database;
  const TemporaryFolder folder;
  const auto path = folder.path() + "/status.json", link = folder.path() + "/link.json";
  std::ofstream{path};
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  std::filesystem::create_symlink("status.json", link);
  for (const auto& name : {path, link}) {
    CAPTURE(name);
    const std::vector<std::string> command{"--", "sh", "-c", "echo $$; read line"};
    std::vector<std::string> first{"run", "--status-file", name, std::string(200, 'n')};
    std::vector<std::string> second{"run", "--status-file", name, "job"};
    for (auto* arguments : {&first, &second}) arguments->insert(arguments->end(), command.begin(), command.end());
    auto longer = dlock_at(database.url(), first), shorter = dlock_at(database.url(), second);
    for (auto* child : {&longer, &shorter}) REQUIRE(next_pid(*child) > 0);
    for (auto* child : {&longer, &shorter}) {
      child->tell("go");
      CHECK(child->wait() == 0);
    }
    CHECK(json_in(path)["tokens"].size() == 1);
    CHECK(json_in(path)["tokens"].contains("job"));
  }
  struct stat file {};
  REQUIRE(::stat(path.c_str(), &file) == 0);
  CHECK((file.st_mode & 07777) == 0640);
  CHECK(std::filesystem::is_symlink(link));
  const std::filesystem::directory_iterator files(folder.path());
  CHECK(std::distance(begin(files), end(files)) == 2);
}

TEST_CASE("who has opened the status file before a run reads there what became of it") {
  Database database;
  const TemporaryFolder folder;
  const auto path = folder.path() + "/status.json";
  std::ofstream{path};
  std::ifstream opened(path);
  CHECK(dlock_tool(database.url(), {"run", "--status-file", path, "job", "--", "true"}).code == 0);
  std::string line;
  std::getline(opened, line);
  REQUIRE(!line.empty());
  CHECK(Json::parse(line)["outcome"] == "done");
  CHECK(json_in(path)["outcome"] == "done");
}

TEST_CASE("a report to standard output comes after what is there, also in a file") {
  Database database;
  const TemporaryFolder folder;
  const auto path = folder.path() + "/log";
  std::ofstream(path) << "before\n";
  CHECK(dlock_tool(database.url(), {"run", "--status-file", "/dev/stdout", "job", "--", "echo", "between"},
                   ">>'" + path + "' 2>&1 </dev/null")
            .code == 0);
  std::ifstream file(path);
  std::string line;
  for (const auto* expected : {"before", "between"}) {
    std::getline(file, line);
    CHECK(line == expected);
  }
  std::getline(file, line);
  CHECK(Json::parse(line)["outcome"] == "done");
}

TEST_CASE("a status file that may not grow is a warning") {
  Database database;
  const TemporaryFolder folder;
  Child child({"/bin/sh", "-c", "ulimit -f 0; exec \"$0\" \"$@\" 2>&1", path::tool("dlock"), "run", "--status-file",
               folder.path() + "/status.json", "--ttl", "1ms", "job", "--", "true"},
              {"DLOCK_URL=" + database.url()});
  const auto ran = finish(child);
  CHECK(ran.code == 125);
  CHECK_MESSAGE(ran.says("could not be written"), ran.out);
}

TEST_CASE("with -E 0 nothing is said of a database that is away, either") {
  const std::string away = "postgresql://127.0.0.1:1/app";
  const std::vector<std::string> line{"run", "--if-unavailable", "skip", "-E", "0", "job", "--", "true"};
  const auto quiet = dlock_tool(away, line);
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
  auto verbose = line;
  verbose.insert(verbose.begin() + 1, "-v");
  CHECK(dlock_tool(away, verbose).says("skipped"));
}
