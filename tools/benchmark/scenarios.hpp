// The scenarios as commands: their options, and what is done with them.
#pragma once

#include "target.hpp"
#include "tools/shared/command_line.hpp"
#include "tools/shared/console.hpp"

#include <functional>
#include <string>

namespace bench {

// Options of every scenario, as they were given.
struct Common {
  std::string seconds, plot;
  bool json = false;
};

// What a scenario is run with.
struct Order {
  Target target{};
  const Common& common;
  dlock::tools::Console& console;

  double seconds(double usual) const;
  bool as_json() const { return common.json || console.json(); }
};

// One scenario: its command, and what runs it and answers the exit code.
struct Scenario {
  dlock::tools::Command* command = nullptr;
  std::function<int(const Order&)> run;
};

std::vector<Scenario> add_scenarios(dlock::tools::Command& tool);

}  // namespace bench
