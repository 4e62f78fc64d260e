// The options of the commands that ask the table once: list, inspect, acquire, renew, release.
#pragma once

#include "acquire_options.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace dlock::tools {

class Signals;

class Single {
 public:
  explicit Single(Command& tool);
  // Answers the exit code. Throws UsageError, and Error.
  int operator()(const ConnectionOptions& connection, Console& console);

 private:
  // The options that say which grant is meant.
  Token token() const;
  std::optional<std::string> owner() const;
  // Empty: nobody holds the lock under that token.
  std::optional<Grant> grant(const std::optional<Holder>& row) const;
  void check(const Console& console) const;

  int list(Engine& engine, Console& console) const;
  int inspect(Engine& engine, Console& console) const;
  int renew(Engine& engine, Console& console) const;
  int release(Engine& engine, Console& console) const;
  int force(Engine& engine, Console& console) const;
  // The grant is handed to the caller by its output only, so a signal or a broken pipe gives it back.
  int acquire(const std::string& url, const EngineOptions& options, const Signals& signals, Console& console) const;
  static int hand_out(Lock& lock, Duration ttl, const Signals& signals, Console& console);
  static void give_back(Lock& lock, Console& console);
  static void print_grant(const Lock& lock, Duration ttl, Console& console);
  int not_the_holder(const std::optional<Holder>& row, Console& console) const;

  Command &list_, &inspect_, &acquire_, &renew_, &release_;
  Asking asking_;
  std::string glob_ = "*", state_ = "held", name_;
  std::optional<std::string> ttl_, token_, owner_, reason_, expected_;
  bool force_ = false, yes_ = false;
};

}  // namespace dlock::tools
