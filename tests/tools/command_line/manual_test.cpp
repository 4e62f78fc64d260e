// The promise that the manual pages are all there, and that man has nothing to complain about.
#include "support/paths.hpp"
#include "tools/command_line/tool.hpp"

#include <filesystem>

using namespace dlock::test;

namespace {

std::string page_of(const std::string& name) { return path::share() + "/man/man1/" + name + ".1"; }

Ran man(const std::string& path, std::vector<std::string> options, const std::string& streams) {
  options.insert(options.begin(), {"/usr/bin/env", "man", "-E", "UTF-8", "-l"});
  options.push_back(path);
  return ran(std::move(options), streams, {"LC_ALL=C.UTF-8", "MANWIDTH=80", "MANROFFSEQ=", "MANOPT=", "MANPAGER=cat"});
}

void check_page(const std::string& name, const Json& command) {
  const auto path = page_of(name);
  REQUIRE_MESSAGE(std::filesystem::exists(path), path);
  const auto complaints = man(path, {"--warnings", "-Tutf8", "-Z"}, "2>&1 >/dev/null </dev/null");
  CHECK_MESSAGE(complaints.code == 0, path);
  CHECK_MESSAGE(complaints.out.empty(), path << ": " << complaints.out);
  // Without the marks of bold type, and of hyphenated words.
  const auto text = man(path, {"--no-hyphenation", "--no-justification"}, "2>/dev/null </dev/null | col -bx");
  for (const std::string title : {"NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "SEE ALSO"})
    CHECK_MESSAGE(text.says("\n" + title + "\n"), path << ": " << title);
  for (const auto& option : command["options"].elements()) {
    const auto names = option["names"].elements();
    if (names.back() == "--help") continue;
    for (const auto& each : names) CHECK_MESSAGE(text.says(each.text()), path << ": " << each);
  }
}

}  // namespace

TEST_CASE("there is a manual page for each tool and each command, with all options, that man takes without a warning") {
  for (const auto& name : tools) {
    const auto known = description(name);
    check_page(name, known);
    for (const auto& command : known["commands"].elements()) check_page(name + "-" + command["name"].text(), command);
  }
}
