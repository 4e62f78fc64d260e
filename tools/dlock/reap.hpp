// The options of `dlock reap`.
#pragma once

#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <dlock/duration.hpp>
#include <dlock/options.hpp>
#include <dlock/reaping.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace dlock::tools {

class Reap {
 public:
  explicit Reap(Command& tool);
  bool chosen() const { return command_.parsed(); }
  // Answers the exit code. Throws UsageError, and Error.
  int operator()(const ConnectionOptions& connection, Console& console) const;

 private:
  std::size_t limit() const;
  EngineOptions options(const ConnectionOptions& connection) const;

  Command& command_;
  std::string glob_ = "*", limit_ = "1000", history_ = "0";
  std::optional<std::string> retention_, grace_;
  bool dry_run_ = false;
};

}  // namespace dlock::tools
