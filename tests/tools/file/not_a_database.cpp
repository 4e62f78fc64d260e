// What is said of a file that is something else than a database.
#include "support/database.hpp"
#include "tools/command.hpp"
#include "types/url.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("a file that is no database is refused by every command, which names it and leaves it alone") {
  const auto test_database = opener().test_database();
  const auto path = Url::parse(test_database->url()).path;
  const std::string text =
      "a letter to somebody, and as long as one page of a database would be: " + std::string(4096, '.');
  const TemporaryFolder folder;
  const auto letter = folder.path() + "/letter";
  std::ofstream(letter) << text;
  auto url = test_database->url();
  url.replace(url.find(path), path.size(), letter);
  const auto refused = [&](const Ran& ran, int code) {
    CHECK_MESSAGE(ran.code == code, ran.out);
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
    CHECK_MESSAGE(ran.says(letter), ran.out);
    CHECK_MESSAGE(ran.says("name another one in the URL"), ran.out);
  };
  for (const std::string command : {"status", "check", "plan", "up", "repair"})
    refused(migrate({command, "-u", url}), 1);
  refused(migrate({"dump", "-u", url}), 2);
  for (const std::string command : {"list", "reap", "graph"}) refused(dlock_tool(url, {command}), 2);
  for (const std::string command : {"inspect", "wait"}) refused(dlock_tool(url, {command, "job"}), 2);
  refused(dlock_tool(url, {"acquire", "job", "--ttl", "5s"}), 2);
  refused(dlock_tool(url, {"top", "-b", "-n", "1"}), 2);
  refused(dlock_tool(url, {"run", "job", "--", "true"}), 125);
  std::ifstream file(letter);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == text);
}
