// The options of the commands about those who wait: wait, graph.
#pragma once

#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <optional>
#include <string>

namespace dlock::tools {

class Queue {
 public:
  explicit Queue(Command& tool);
  bool chosen() const { return wait_.parsed() || graph_.parsed(); }
  // Answers the exit code. Throws UsageError, and Error.
  int operator()(const ConnectionOptions& connection, Console& console) const;

 private:
  int wait(const ConnectionOptions& connection, Console& console) const;
  int graph(const ConnectionOptions& connection, Console& console) const;

  Command &wait_, &graph_;
  std::string name_, glob_ = "*";
  std::optional<std::string> limit_;
  bool nonblock_ = false, dot_ = false;
};

}  // namespace dlock::tools
