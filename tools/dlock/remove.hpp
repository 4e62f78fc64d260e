// The options of `dlock remove`.
#pragma once

#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <optional>
#include <string>

namespace dlock::tools {

class Remove {
 public:
  explicit Remove(Command& tool);
  bool chosen() const { return command_.parsed(); }
  // Answers the exit code. Throws UsageError, and Error.
  int operator()(const ConnectionOptions& connection, Console& console) const;

 private:
  Command& command_;
  std::string name_;
  std::optional<std::string> grace_;
};

}  // namespace dlock::tools
