// The promise that no command outlives its lease, though its run is killed or stopped.
#include "command.hpp"
#include "processes.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/paths.hpp"
#include "support/slowness.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Prints its process id, and neither ends nor heeds what can be ignored.
const std::string stubborn = "trap '' TERM HUP INT; echo $$; while :; do sleep 0.05; done";

pid_t next_pid(Child& child) { return static_cast<pid_t>(std::stol(child.line().value_or("0"))); }

// A run of a shell script, up to the process id that it prints first.
struct Run {
  Run(const Database& database, const std::string& script, std::chrono::milliseconds ttl = 30s,
      const std::string& shell = "sh")
      : child(dlock_at(database.url(), {"run", "--ttl", words(ttl), "job", "--", shell, "-c", script})),
        command(next_pid(child)) {
    REQUIRE(command > 0);
    guardian = guardian_of(child.pid());
    REQUIRE(guardian > 0);
    // The command may be quicker than the guardian, who has yet to say that it has started, and sleeps after that.
    REQUIRE(eventually([&] { return state_of(guardian) == 'S'; }));
  }
  Child child;
  pid_t command, guardian = 0;
};

// Stops a run where it is not writing: on a database with one writer it would stop everybody.
void stop_after_renewal(Database& database, const Run& run) {
  const auto end = database.admin().expires_at("job");
  REQUIRE(eventually([&] { return database.admin().expires_at("job") > end; }));
  ::kill(run.child.pid(), SIGSTOP);
  REQUIRE(eventually([&] { return stopped(run.child.pid()); }));
}

struct Descriptor {
  explicit Descriptor(int its_number) : number(its_number) {}
  ~Descriptor() { ::close(number); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int number;
};

// The pipe that a guardian only writes to, and never waits for.
std::string reports_of(pid_t guardian) {
  const auto folder = "/proc/" + std::to_string(guardian);
  for (const auto& one : std::filesystem::directory_iterator(folder + "/fd")) {
    std::ifstream info(folder + "/fdinfo/" + one.path().filename().string());
    std::string word;
    while (info >> word && word != "flags:") {}
    int flags = 0;
    info >> std::oct >> flags;
    if ((flags & O_ACCMODE) == O_WRONLY && (flags & O_NONBLOCK) != 0) return one.path().string();
  }
  return {};
}

}  // namespace

TEST_CASE("a run that is killed takes its command with it, and everything in the command's group") {
  Database database;
  Run run(database, "sh -c \"" + stubborn + "\" & echo $!; " + stubborn);
  const auto other = run.command;  // the first one printed may be either
  const auto second = next_pid(run.child), third = next_pid(run.child);
  const Stopwatch time;
  run.child.signal(SIGKILL);
  CHECK(eventually([&] { return !running(other) && !running(second) && !running(third); }));
  MESSAGE("gone after " << time.elapsed().count() << " us");
  CHECK(time.elapsed() < 4s * slowness());  // of the thirty that the lease has
  CHECK(eventually([&] { return !running(run.guardian); }));
  run.child.wait();
  auto engine = database.engine();
  free_by_force(engine, "job");
}

TEST_CASE("a run that is stopped loses its command before the lease is over, and ends with 79 when it goes on") {
  Database database;
  auto engine = database.engine();
  Run run(database, stubborn, 3s * slowness());
  stop_after_renewal(database, run);
  CHECK_FALSE(outlives_its_lease(engine, run.command));
  MESSAGE("the lease had " << engine.inspect("job")->left.count() << " us left");
  CHECK(stopped(run.child.pid()));
  REQUIRE(eventually([&] { return engine.inspect("job")->state == State::expired; }));
  run.child.signal(SIGCONT);
  CHECK(finish(run.child).code == 79);
  CHECK_FALSE(running(run.guardian));
}

TEST_CASE("a run that was stopped for less than its lease goes on as if nothing had been") {
  Database database;
  Run run(database, "echo $$; read line; exit 3", 3s * slowness());
  stop_after_renewal(database, run);
  run.child.signal(SIGCONT);
  const auto end = database.admin().expires_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > end; }));
  CHECK(running(run.command));
  run.child.tell("go");
  CHECK(run.child.wait() == 3);
}

TEST_CASE("a command lives through many leases, renewed each time for its guardian, too") {
  Database database;
  const auto ttl = 3s * slowness();
  Run run(database, "echo $$; read line; exit 3", ttl);
  const auto begun = database.admin().acquired_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > begun + 3 * ttl; }));
  run.child.tell("go");
  CHECK(run.child.wait() == 3);
}

TEST_CASE("a guardian that is killed ends the command, and the run says so; the lock is free at once") {
  Database database;
  Run run(database, stubborn + " & " + stubborn);
  const auto second = next_pid(run.child);
  ::kill(run.guardian, SIGKILL);
  const auto ran = finish(run.child);
  CHECK(ran.code == 128 + SIGKILL);
  CHECK_MESSAGE(ran.says("the guardian of the command was killed"), ran.out);
  CHECK_FALSE(running(run.command));
  CHECK(eventually([&] { return !running(second); }));
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a guardian that is stopped does not keep the run from ending its command") {
  Database database;
  auto engine = database.engine();
  Run run(database, stubborn, 3s * slowness());
  ::kill(run.guardian, SIGSTOP);
  REQUIRE(engine.force_release("job", engine.inspect("job")->token));
  CHECK(finish(run.child).code == 79);
  CHECK_FALSE(running(run.command));
  CHECK_FALSE(running(run.guardian));
}

TEST_CASE("a guardian that alone is stopped is continued, and tells how the command ends") {
  Database database;
  Run run(database, "echo $$; read line; exit 3");
  ::kill(run.guardian, SIGSTOP);
  run.child.tell("go");
  if (!eventually([&] { return !run.child.running(); })) run.child.signal(SIGKILL);
  CHECK(run.child.wait() == 3);
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a run that is stopped while its command is stopped thousands of times learns how that has ended") {
  Database database;
  Run run(database, "echo $$; exec sleep 600", 60s * slowness());
  ::kill(run.child.pid(), SIGSTOP);
  REQUIRE(eventually([&] { return stopped(run.child.pid()); }));
  const Descriptor reports(::open(reports_of(run.guardian).c_str(), O_WRONLY | O_NONBLOCK));
  REQUIRE(reports.number >= 0);
  ::kill(run.command, SIGSTOP);
  // As guardian.hpp has it: a stop, by that signal.
  constexpr std::array<std::int32_t, 5> stop{1, SIGSTOP, 0, 0, 0};
  int unread = 0;
  REQUIRE(eventually([&] { return ::ioctl(reports.number, FIONREAD, &unread) == 0 && unread > 0; }));
  REQUIRE(unread == sizeof stop);
  int more = 0;
  while (::write(reports.number, stop.data(), sizeof stop) == sizeof stop) ++more;
  CHECK(more > 1000);
  ::kill(run.command, SIGKILL);
  REQUIRE(eventually([&] { return state_of(run.command) == 'Z'; }));
  REQUIRE(eventually([&] { return state_of(run.guardian) == 'S'; }));
  ::kill(run.child.pid(), SIGCONT);
  const bool ended = eventually([&] { return !run.child.running(); });
  CHECK(ended);
  if (!ended) run.child.signal(SIGKILL);
  CHECK(run.child.wait() == 128 + SIGKILL);
  CHECK(database.admin().held() == 0);
}

TEST_CASE("who forks and ends, again and again, is not missed when a run that was told to end looks who is left") {
  Database database;
  const TemporaryFolder folder;
  const auto end = folder.path() + "/end";
  std::ofstream(folder.path() + "/next") << "test -e " + end + " || sh $0 &\n";
  Run run(database,
          "(trap '' TERM; exec sh " + folder.path() + "/next) </dev/null >/dev/null 2>&1; echo $$; exec sleep 60");
  run.child.signal(SIGTERM);
  REQUIRE(eventually([&] { return !running(run.command); }));
  for (int i = 0; i < 100; ++i) {
    REQUIRE(database.admin().held() == 1);
    std::this_thread::sleep_for(10ms);
  }
  std::ofstream{end};
  CHECK(finish(run.child).code == 128 + SIGTERM);
}

TEST_CASE("who forks and ends, again and again, in a group of its own is killed with the rest") {
  Database database;
  const TemporaryFolder folder;
  const auto count = folder.path() + "/count";
  std::ofstream(folder.path() + "/next") << "echo >>" + count + "; sh $0 &\n";
  // With job control what "&" starts has a group of its own; the chain that begins there stays in it.
  Run run(database, "set -m; sh " + folder.path() + "/next </dev/null >/dev/null 2>&1 & echo $$; exec sleep 60", 30s,
          "bash");
  REQUIRE(eventually([&] { return std::filesystem::exists(count); }));
  run.child.signal(SIGKILL);
  run.child.wait();
  CHECK(eventually([&] { return !running(run.guardian); }));
  const auto size = std::filesystem::file_size(count);
  std::this_thread::sleep_for(200ms);
  CHECK(std::filesystem::file_size(count) == size);
  auto engine = database.engine();
  free_by_force(engine, "job");
}

TEST_CASE("a run that cannot look who is left, since it has no descriptor, keeps its lock") {
  Database database;
  const TemporaryFolder folder;
  const auto tidy = folder.path() + "/tidy";
  Run run(database, "sh -c 'trap \"until test -e " + tidy +
                        "; do sleep 0.02; done; exit 0\" TERM; echo $PPID; while :; do sleep 0.02; done' & wait");
  rlimit before{};
  REQUIRE(::prlimit(run.child.pid(), RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit soft{8, before.rlim_max};  // poll(2) takes no more than that, and all of these are open
  REQUIRE(::prlimit(run.child.pid(), RLIMIT_NOFILE, &soft, nullptr) == 0);
  run.child.signal(SIGTERM);
  REQUIRE(eventually([&] { return !running(run.command); }));
  for (int i = 0; i < 20; ++i) {
    CHECK(database.admin().held() == 1);
    std::this_thread::sleep_for(10ms);
  }
  REQUIRE(::prlimit(run.child.pid(), RLIMIT_NOFILE, &before, nullptr) == 0);
  std::ofstream{tidy};
  CHECK(finish(run.child).code == 128 + SIGTERM);
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a /proc that does not show everybody keeps no lock for a command that is dead") {
  if (Child({"/bin/sh", "-c", "exec unshare -mpf mount -t proc -o hidepid=1 proc /proc"}).wait() != 0) {
    MESSAGE("/proc cannot be mounted here");
    return;
  }
  Database database;
  // Whoever has less rights than another process must not read it.
  Child child({"/bin/sh", "-c",
               "exec unshare -mpf --kill-child sh -c 'mount -t proc -o hidepid=1 proc /proc; sleep 300 & "
               "exec setpriv --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all \"$0\" run job -- sh -c "
               "\"echo ready; exec sleep 300\"' "
               "\"$0\" 2>&1",
               path::tool("dlock")},
              {"DLOCK_URL=" + database.url(), "DLOCK_OWNER=", "DLOCK_OWNERS="});
  REQUIRE(child.line() == "ready");
  ::kill(children_of(child.pid()).front(), SIGTERM);
  const bool ended = eventually([&] { return !child.running(); });
  CHECK(ended);
  if (!ended) child.signal(SIGKILL);
  CHECK(child.wait() == 128 + SIGTERM);
  CHECK(database.admin().held() == 0);
}

TEST_CASE("what a shell has started before it became a run is not ended with the run") {
  Database database;
  const auto longest = std::chrono::seconds{1} * slowness();
  Child child({"/bin/bash", "-c",
               "exec > >(sleep \"$2\"; sed -u 's/^/log: /') 2>&1; exec \"$0\" run --max-runtime \"$1\" -k 200ms job -- "
               "sh -c 'echo said; exec sleep 300'",
               path::tool("dlock"), words(longest),
               std::to_string(std::chrono::ceil<std::chrono::seconds>(longest).count() + 1)},
              {"DLOCK_URL=" + database.url(), "DLOCK_OWNER=", "DLOCK_OWNERS="});
  CHECK(child.line() == "log: said");
  const auto last = child.line();
  REQUIRE(last);
  CHECK_MESSAGE(last->find("--max-runtime") != std::string::npos, *last);
  CHECK(child.wait() == 124);
}

TEST_CASE("with a /proc of another pid namespace a run waits for its group, and ends it, all the same") {
  if (Child({"/bin/sh", "-c", "exec unshare -rpf true"}).wait() != 0) {
    MESSAGE("pid namespaces cannot be had here");
    return;
  }
  Database database;
  const TemporaryFolder folder;
  const auto tidy = folder.path() + "/tidy";
  const auto inside = [&](const std::vector<std::string>& arguments, const std::string& script) {
    std::vector<std::string> line{"/bin/sh", "-c", "exec unshare -rpf --kill-child \"$0\" run \"$@\" 2>&1",
                                  path::tool("dlock")};
    line.insert(line.end(), arguments.begin(), arguments.end());
    line.insert(line.end(), {"job", "--", "sh", "-c", script});
    return Child(line, {"DLOCK_URL=" + database.url(), "DLOCK_OWNER=", "DLOCK_OWNERS="});
  };
  const auto end = [&](Child& child) {
    const bool ended = eventually([&] { return !child.running(); });
    CHECK(ended);
    if (!ended) child.signal(SIGKILL);
    const auto code = child.wait();
    auto engine = database.engine();
    free_by_force(engine, "job");
    return code;
  };
  auto told = inside({}, "sh -c 'trap \"until test -e " + tidy +
                             "; do sleep 0.02; done; exit 0\" TERM; echo ready; while :; do sleep 0.02; done'; :");
  REQUIRE(told.line() == "ready");
  const auto dlock = children_of(told.pid()).front();
  const auto command = children_of(guardian_of(dlock)).front();
  ::kill(dlock, SIGTERM);
  REQUIRE(eventually([&] { return !running(command); }));
  for (int i = 0; i < 20; ++i) {
    CHECK(database.admin().held() == 1);
    std::this_thread::sleep_for(10ms);
  }
  std::ofstream{tidy};
  CHECK(end(told) == 128 + SIGTERM);
  auto overdue = inside({"--max-runtime", words(1s * slowness()), "-k", "200ms"}, stubborn + " & " + stubborn);
  CHECK(end(overdue) == 124);
}

TEST_CASE("a command whose run and guardian are killed at one stroke is killed as well") {
  Database database;
  Run run(database, "trap '' TERM HUP INT; echo $$; exec sleep 60");
  ::kill(run.child.pid(), SIGSTOP);  // so that it cannot notice
  ::kill(run.guardian, SIGKILL);
  ::kill(run.child.pid(), SIGKILL);
  CHECK(eventually([&] { return !running(run.command); }));
  run.child.wait();
  auto engine = database.engine();
  free_by_force(engine, "job");
}

TEST_CASE("what moved to another group of the session is killed, too, and what made its own session is left") {
  Database database;
  Run run(database,
          "echo $$; setsid sh -c 'echo $$; exec sleep 61' & read line; set -m; "
          "sh -c 'trap \"\" TERM; echo $$; sleep 62; :' & wait",
          30s, "bash");
  const auto daemon = next_pid(run.child);
  run.child.tell("go on");
  const auto moved = next_pid(run.child);
  REQUIRE(running(daemon));
  REQUIRE(running(moved));
  CHECK(::getpgid(moved) != ::getpgid(run.command));
  run.child.signal(SIGKILL);
  CHECK(eventually([&] { return !running(moved) && !running(run.command) && !running(run.guardian); }));
  CHECK(running(daemon));
  ::kill(daemon, SIGKILL);
  run.child.wait();
  auto engine = database.engine();
  free_by_force(engine, "job");
}

TEST_CASE("no signal but KILL and STOP reaches the guardian, and it is in nobody's group") {
  Database database;
  Run run(database, "echo $$; read line; exit 4");
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGPIPE, SIGALRM})
    CHECK(::kill(run.guardian, signal) == 0);
  CHECK(::getpgid(run.guardian) == run.guardian);
  CHECK(::getpgid(run.command) == run.command);
  CHECK(::getsid(run.guardian) == ::getsid(run.child.pid()));
  CHECK(running(run.guardian));
  run.child.tell("go");
  CHECK(run.child.wait() == 4);
}

TEST_CASE("the command inherits what it would without a lock, and the guardian no connection") {
  Database database;
  Run run(database, "echo $$; read line");
  Child plain({"/bin/sh", "-c", "echo $$; read line"});
  REQUIRE(next_pid(plain) == plain.pid());
  // "3 pipe:[4711]", beyond the standard streams.
  const auto descriptors = [](pid_t pid) {
    std::set<std::string> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored))
      if (std::stoi(entry.path().filename()) > 2)
        found.insert(entry.path().filename().string() + " " +
                     std::filesystem::read_symlink(entry.path(), ignored).string());
    return found;
  };
  const auto without = descriptors(plain.pid());
  CHECK(descriptors(run.command) == without);
  for (const auto& one : descriptors(run.guardian)) {
    const bool ours = one.find(" pipe:") != std::string::npos || one.find(" anon_inode:") != std::string::npos ||
                      one.ends_with(" /proc");
    CHECK_MESSAGE((ours || without.contains(one)), one);
  }
  plain.tell("go");
  CHECK(plain.wait() == 0);
  run.child.tell("go");
  CHECK(run.child.wait() == 0);
}

TEST_CASE("a command that ends as it should leaves its background processes alone, and no guardian") {
  Database database;
  Run run(database, "echo $$; sleep 63 >/dev/null 2>&1 & echo $!; read go; exit 5");
  const auto left = next_pid(run.child);
  run.child.tell("go");
  CHECK(finish(run.child).code == 5);
  CHECK(running(left));
  CHECK_FALSE(running(run.guardian));
  CHECK(database.admin().held() == 0);
  ::kill(left, SIGKILL);
}

TEST_CASE("a run that does not get its lock leaves no guardian behind") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  auto waiting = dlock_at(database.url(), {"run", "job", "--", "true"});
  pid_t guardian = 0;
  REQUIRE(eventually([&] { return (guardian = guardian_of(waiting.pid())) > 0; }));
  waiting.signal(SIGKILL);
  CHECK(eventually([&] { return !running(guardian); }));
  waiting.wait();
  CHECK(dlock_tool(database.url(), {"run", "-n", "job", "--", "true"}).code == 75);
  lock->release();
}

TEST_CASE("a run that has too few descriptors to watch over its command does not start it") {
  Database database;
  const TemporaryFolder folder;
  const auto path = folder.path() + "/started";
  const auto run_with = [&](int descriptors) {
    CAPTURE(descriptors);
    std::filesystem::remove(path);
    Child child({"/bin/sh", "-c", "ulimit -n " + std::to_string(descriptors) + "; exec \"$0\" \"$@\" 2>&1",
                 path::tool("dlock"), "run", "job", "--", "touch", path},
                {"DLOCK_URL=" + database.url(), "DLOCK_OWNER=", "DLOCK_OWNERS="});
    const auto ran = finish(child);
    CHECK_MESSAGE(std::filesystem::exists(path) == (ran.code == 0), ran.out);
    return ran.code;
  };
  // Again and again: a command that was started would be killed soon, and seldom come to do something.
  for (int descriptors = 8; descriptors < 30; ++descriptors)
    for (int i = 0; i < 20 && run_with(descriptors) == 125; ++i) {}
}
