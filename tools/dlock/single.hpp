// This file knows the commands that ask the table once: list, inspect, acquire, renew, release.
#pragma once

#include "asking.hpp"

#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace dlock::tools {

class Single {
 public:
  explicit Single(CLI::App& app);
  // Answers the exit code.
  int operator()(const ConnectionOptions& connection, Console& console);

 private:
  int list(Engine& engine, Console& console) const;
  int inspect(Engine& engine, Console& console) const;
  int acquire(Engine& engine, Console& console) const;
  int renew(Engine& engine, Console& console) const;
  int release(Engine& engine, Console& console) const;
  int force(Engine& engine, Console& console) const;
  Token token(const char* flag, const std::string& text) const;
  void check() const;

  CLI::App *list_, *inspect_, *acquire_, *renew_, *release_;
  Asking asking_;
  std::string glob_ = "*", state_ = "held", name_, ttl_, token_, expected_, format_ = "text";
  bool force_ = false, yes_ = false;
};

}  // namespace dlock::tools
