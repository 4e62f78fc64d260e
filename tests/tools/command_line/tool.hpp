// How a test runs a tool that needs no database, and reads what it says of itself.
#pragma once

#include "support/json.hpp"
#include "support/paths.hpp"
#include "tools/migrate.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dlock::test {

inline const std::vector<std::string> tools{"dlock", "dlock-migrate", "dlock-bench"};

inline Ran ran(std::vector<std::string> command, const std::string& streams = "2>&1 </dev/null",
               const std::vector<std::string>& environment = {}) {
  command.insert(command.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" " + streams});
  Child child(command, environment);
  return finish(child);
}

inline Ran tool(const std::string& name, std::vector<std::string> arguments,
                const std::string& streams = "2>&1 </dev/null") {
  arguments.insert(arguments.begin(), path::tool(name));
  return ran(std::move(arguments), streams, {"DLOCK_URL=", "DLOCK_MIGRATE_URL="});
}

inline Json description(const std::string& name) {
  const auto said = tool(name, {"describe-cli"});
  REQUIRE_MESSAGE(said.code == 0, said.out);
  return Json::parse(said.out);
}

}  // namespace dlock::test
