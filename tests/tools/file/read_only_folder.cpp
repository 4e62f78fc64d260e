// What a user is told who may read a database's file, but may write neither it nor its folder.
#include "support/database.hpp"
#include "support/paths.hpp"
#include "tools/command.hpp"
#include "types/url.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

using namespace dlock;
using namespace dlock::test;
namespace fs = std::filesystem;

namespace {

// To the superuser nothing is read-only, unless that right is given up.
Ran run(const std::string& tool, const std::vector<std::string>& arguments, const std::string& url) {
  std::vector<std::string> command{"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&1 </dev/null"};
  if (::geteuid() == 0)
    command.insert(command.end(), {"setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--"});
  command.push_back(path::tool(tool));
  command.insert(command.end(), arguments.begin(), arguments.end());
  Child child(command, {"DLOCK_URL=" + url, "DLOCK_NAME=", "DLOCK_OWNER=", "DLOCK_OWNERS=", "DLOCK_JOB="});
  return finish(child);
}

// The folder of a test database, which may only be looked into meanwhile.
class Sealed {
 public:
  explicit Sealed(const TestDatabase& test_database)
      : file_(Url::parse(test_database.url()).path), folder_(fs::path(file_).parent_path().string()) {
    ::chmod(file_.c_str(), 0444);
    ::chmod(folder_.c_str(), 0555);
  }
  ~Sealed() {
    ::chmod(folder_.c_str(), 0755);
    ::chmod(file_.c_str(), 0644);
  }
  Sealed(const Sealed&) = delete;
  Sealed& operator=(const Sealed&) = delete;

 private:
  const std::string file_, folder_;
};

}  // namespace

TEST_CASE(
    "a file in a folder that may not be written is exit code 9 of every command, with what is needed; 125 of run") {
  const auto test_database = opener().test_database();
  REQUIRE(migrate({"up", "-q", "-u", test_database->url()}).code == 0);
  const Sealed sealed(*test_database);
  const auto refused = [&](const std::string& tool, const std::vector<std::string>& arguments, int code) {
    CAPTURE(arguments.front());
    const auto ran = run(tool, arguments, test_database->url());
    CHECK_MESSAGE(ran.code == code, ran.out);
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
    CHECK_MESSAGE(ran.says("this user needs permission to read and write the file and its folder"), ran.out);
    CHECK_MESSAGE(ran.says(Url::parse(test_database->url()).path), ran.out);
  };
  for (const std::string command : {"status", "check", "plan", "dump", "up", "repair"})
    refused("dlock-migrate", {command}, 9);
  refused("dlock-migrate", {"down", "--to", "0", "--yes"}, 9);
  refused("dlock-migrate", {"baseline", "--at", "1"}, 9);
  for (const std::string command : {"list", "reap", "graph"}) refused("dlock", {command}, 9);
  for (const std::string command : {"inspect", "wait"}) refused("dlock", {command, "job"}, 9);
  refused("dlock", {"acquire", "job", "--ttl", "5s"}, 9);
  refused("dlock", {"top", "-b", "-n", "1"}, 9);
  refused("dlock", {"run", "job", "--", "true"}, 125);
}
