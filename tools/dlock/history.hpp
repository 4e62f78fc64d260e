// The options of `dlock history`.
#pragma once

#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <string>

namespace dlock::tools {

class History {
 public:
  explicit History(Command& tool);
  bool chosen() const { return command_.parsed(); }
  // Answers the exit code. Throws UsageError, and Error.
  int operator()(const ConnectionOptions& connection, Console& console) const;

 private:
  Command& command_;
  std::string name_, limit_ = "20";
};

}  // namespace dlock::tools
