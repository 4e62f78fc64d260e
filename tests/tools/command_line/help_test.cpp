// The promise that every page of help fits a screen.
#include "tools/command_line/tool.hpp"

#include <algorithm>
#include <sstream>

using namespace dlock::test;

namespace {

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void check_page(const std::string& name, const std::vector<std::string>& arguments) {
  const auto page = tool(name, arguments, "2>/dev/null </dev/null");
  CHECK(page.code == 0);
  CHECK_MESSAGE(page.says("Usage: " + name), page.out);
  CHECK_MESSAGE(page.says("Examples:\n  "), page.out);
  std::istringstream lines(page.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK_MESSAGE(columns(line) <= 80, line);
  CHECK_MESSAGE(count <= 24, page.out);
}

}  // namespace

TEST_CASE("every page of help fits 80 columns and 24 lines, with an example") {
  for (const auto& name : tools) {
    const auto known = description(name);
    REQUIRE(known["commands"].size() >= 5);
    check_page(name, {"--help"});
    for (const std::string command : {"-h", "--help"}) CHECK(tool(name, {command}).code == 0);
    for (const auto& command : known["commands"].elements()) check_page(name, {command["name"].text(), "--help"});
  }
}

TEST_CASE("the command that describes the command line is shown nowhere") {
  for (const auto& name : tools) {
    CHECK_FALSE(tool(name, {"--help"}).says("describe"));
    const auto known = description(name);
    for (const auto& command : known["commands"].elements()) CHECK(command["name"] != "describe-cli");
  }
}
