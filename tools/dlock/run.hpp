// The options of `dlock run`: a command that runs only under a lock.
#pragma once

#include "acquire_options.hpp"
#include "deadlines.hpp"
#include "locked_run.hpp"

#include "tools/shared/arguments.hpp"
#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <optional>
#include <string>

namespace dlock::tools {

class Run {
 public:
  // `arguments`: where no command can be in them, one name alone is understood.
  Run(Command& tool, const Arguments& arguments);
  bool chosen() const { return command_.parsed(); }
  // Answers the exit code. Throws UsageError, and Error{misuse}.
  int operator()(const ConnectionOptions& connection, Console& console, const Arguments& arguments);

 private:
  run::Plan plan(const ConnectionOptions& connection, const Arguments& arguments) const;

  Command& command_;
  Asking asking_;
  run::Chosen times_;
  std::string conflict_code_ = "75", lost_code_ = "79", lost_signal_ = "TERM", if_unavailable_ = "fail";
  std::optional<std::string> max_runtime_, shell_, status_file_, yield_signal_;
  bool no_stdin_ = false;
};

}  // namespace dlock::tools
