// The options of `dlock top`: the locks that are held, again and again.
#pragma once

#include "top_rows.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <dlock/duration.hpp>

#include <optional>
#include <string>

namespace dlock::tools {

class Top {
 public:
  explicit Top(Command& tool);
  bool chosen() const { return command_.parsed(); }
  // Answers the exit code. Throws UsageError, and Error.
  int operator()(const ConnectionOptions& connection, Console& console) const;

 private:
  Command& command_;
  std::string glob_ = "*", delay_ = "2s", sort_ = "name";
  std::optional<std::string> times_;
  bool batch_ = false, reverse_ = false;
};

}  // namespace dlock::tools
