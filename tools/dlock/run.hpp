// This file knows `dlock run`: a command that runs only under a lock.
#pragma once

#include "asking.hpp"

#include "tools/shared/arguments.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace dlock::tools {

class Run {
 public:
  explicit Run(CLI::App& app);
  bool chosen() const { return app_->parsed(); }
  // Answers the exit code.
  int operator()(const ConnectionOptions& connection, Console& console, const Arguments& arguments);

 private:
  int hold_and_run(const ConnectionOptions& connection, Console& console, const Arguments& arguments);

  CLI::App* app_;
  Asking asking_;
  std::string conflict_code_ = "75", lost_code_ = "79", ttl_ = "30s", renew_every_, kill_after_, lost_signal_ = "TERM",
              max_runtime_, shell_, if_unavailable_ = "fail", status_file_;
  bool no_stdin_ = false;
};

}  // namespace dlock::tools
