// This file knows the options with which a lock is asked for, by `run` and by `acquire`.
#pragma once

#include "tools/shared/connection.hpp"

#include <dlock/engine.hpp>
#include <dlock/options.hpp>

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace dlock::tools {

// -n, -w, --at-least, --label, --meta and NAME. Threads: one.
class Asking {
 public:
  void add_to(CLI::App& app);

  const std::string& name() const noexcept { return name_; }
  // How long to wait; empty: as long as it takes. Throws UsageError.
  std::optional<Duration> wait() const;
  // What of LockOptions was said here. Throws UsageError.
  LockOptions lock_options() const;

 private:
  std::string name_, wait_, at_least_, label_;
  std::vector<std::string> metadata_;
  bool nonblock_ = false;
  CLI::Option* label_option_ = nullptr;
};

// Options for an engine of this tool on that connection.
EngineOptions engine_options(const ConnectionOptions& connection);

}  // namespace dlock::tools
