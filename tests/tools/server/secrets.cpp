// The promise that a password can come in by every door but the command line, and goes out by none.
#include "support/database.hpp"
#include "support/paths.hpp"
#include "support/pty.hpp"
#include "tools/command.hpp"
#include "tools/processes.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <sstream>

using namespace dlock;
using namespace dlock::test;

namespace {

// A URL, and the password taken out of it.
struct Secret {
  explicit Secret(const std::string& url) : whole(url) {
    const auto begin = url.find(':', url.find("://") + 3), end = url.find('@');
    REQUIRE(begin < end);
    password = url.substr(begin + 1, end - begin - 1);
    bare = url.substr(0, begin) + url.substr(end);
    REQUIRE(password.size() >= 8);
  }
  std::string with(const std::string& other) const {
    return bare.substr(0, bare.find('@')) + ":" + other + bare.substr(bare.find('@'));
  }
  std::string whole, bare, password;
};

void write_private(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
}

// Files of the client libraries, in a home folder of its own.
struct Home {
  explicit Home(const std::string& password) {
    write_private(folder.path() + "/.pgpass", "*:*:*:*:" + password + "\n");
    write_private(folder.path() + "/.my.cnf", "[client]\npassword=" + password + "\n");
  }
  TemporaryFolder folder;
};

Ran ran(const std::string& tool, const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
        const std::string& streams = "2>&1 </dev/null") {
  std::vector<std::string> command{"/bin/sh", "-c", "exec \"$0\" \"$@\" " + streams, path::tool(tool)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Child child(command, environment);
  return finish(child);
}

std::string file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE(
    "the password comes from a file, standard input, a variable, the client library's own file, or the terminal") {
  ServerDatabase database;
  const Secret secret(database->url());
  TemporaryFolder empty;
  const Home home(secret.password);
  const auto path = empty.path() + "/password";
  write_private(path, secret.password + "\n");
  const std::vector<std::string> bare{"DLOCK_URL=" + secret.bare, "DLOCK_MIGRATE_URL=" + secret.bare,
                                      "HOME=" + empty.path()};
  for (const auto& [tool, command] :
       {std::pair<std::string, std::string>{"dlock", "list"}, {"dlock-migrate", "check"}}) {
    const auto refused = ran(tool, {command}, bare);
    CHECK_MESSAGE(refused.code != 0, refused.out);  // or nothing would be shown here
    CHECK(ran(tool, {command, "--password-file", path}, bare).code == 0);
    CHECK(ran(tool, {command, "--password-stdin"}, bare, "2>&1 <" + path).code == 0);
    CHECK(ran(tool, {command, "-e", "MINE"}, {"MINE=" + secret.whole, "HOME=" + empty.path()}).code == 0);
    CHECK(ran(tool, {command}, {bare[0], bare[1], "HOME=" + home.folder.path()}).code == 0);
    Pty terminal({"/bin/sh", "-c", "stty echo; exec \"$0\" \"$@\"", path::tool(tool), command, "-W", "-u", secret.bare},
                 {});
    REQUIRE(terminal.shows("Password: "));
    terminal.type(secret.password + "\n");
    CHECK(terminal.wait() == 0);
    CHECK(terminal.screen().find(secret.password) == std::string::npos);
  }
}

TEST_CASE("no message shows the password, whatever goes wrong") {
  ServerDatabase database;
  const Secret secret(database->url());
  const std::string wrong = "wr0ng-" + secret.password;
  const auto nowhere = [](std::string url) {
    return url.replace(url.find('@') + 1, url.find('/', url.find('@')) - url.find('@') - 1, "127.0.0.1:1");
  };
  for (const auto& [tool, command] :
       {std::pair<std::string, std::string>{"dlock", "list"}, {"dlock-migrate", "status"}, {"dlock-migrate", "up"}})
    for (const std::string& url : {secret.whole, secret.with(wrong), nowhere(secret.whole),
                                   secret.whole + "?no_such_option=1", secret.whole + "_away"})
      for (const std::vector<std::string>& more : {std::vector<std::string>{"-v"},
                                                   {"-v", "--format", "json"},
                                                   {"-v", "--table", "nowhere", "--lock-timeout", "0"},
                                                   {"-u", url, "--shcema", "x"}}) {
        auto arguments = more;
        arguments.insert(arguments.begin(), command);
        const auto said = ran(tool, arguments, {"DLOCK_URL=" + url, "DLOCK_MIGRATE_URL=" + url});
        CHECK_FALSE_MESSAGE(said.says(secret.password), said.out);
      }
}

TEST_CASE("what is no URL, or a broken one, is not shown: it may hold a password") {
  for (const std::string wrong :
       {"host=db user=app password=s3cret", "app:s3cret@db/orders", "Server=db;Uid=app;Pwd=s3cret;",
        "postgresql://app:s3c/ret@db", "postgresql://app:s3c?ret@db", "mysql://app:33/s3cret@db",
        "mysql://app:33?s3cret@db", "mysql://db/x?s3cret", "postgresql://app:s3cret"})
    for (const auto& [tool, command] :
         {std::pair<std::string, std::string>{"dlock", "list"}, {"dlock-migrate", "status"}}) {
      const auto said = ran(tool, {command, "-v", "-u", wrong}, {});
      CHECK_MESSAGE(said.code != 0, said.out);
      for (const std::string part : {"s3c", "cret", "ret@"}) CHECK_FALSE_MESSAGE(said.says(part), said.out);
    }
}

TEST_CASE("no process of a run shows the password beyond what it was given, nor a URL that was an argument") {
  ServerDatabase database;
  const Secret secret(database->url());
  TemporaryFolder folder;
  const auto path = folder.path() + "/password";
  write_private(path, secret.password + "\n");
  const std::vector<std::vector<std::string>> doors{{"-u", secret.bare, "--password-file", path},
                                                    {"-u", secret.whole},
                                                    {"--url=" + secret.whole},
                                                    {"-u" + secret.whole}};
  for (const auto& door : doors) {
    std::vector<std::string> command{path::tool("dlock"), "run"};
    command.insert(command.end(), door.begin(), door.end());
    command.insert(command.end(), {"job", "--", "sh", "-c", "echo $$ $PPID; read line"});
    Child child(
        command,
        {"DLOCK_URL=", "DLOCK_MIGRATE_URL=", "DLOCK_OWNER=", "DLOCK_OWNERS=", "DLOCK_TEST_PG=", "DLOCK_TEST_MYSQL="});
    std::istringstream pids(child.line().value_or(""));
    pid_t job = 0, guardian = 0;
    pids >> job >> guardian;
    REQUIRE(guardian > 0);
    for (const auto pid : {child.pid(), guardian, job})
      for (const std::string what : {"/cmdline", "/environ"}) {
        const auto text = file("/proc/" + std::to_string(pid) + what);
        CHECK(!text.empty());
        CHECK_MESSAGE(text.find(secret.password) == std::string::npos, what);
      }
    child.tell("go");
    CHECK(child.wait() == 0);
  }
}
