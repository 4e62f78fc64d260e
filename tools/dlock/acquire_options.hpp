// The options with which a lock is asked for, by `run` and by `acquire`, and the rules for their values.
#pragma once

#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"

#include <dlock/engine.hpp>
#include <dlock/options.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::tools {

// All of these throw UsageError; they know the library's rules, so that nothing is sent for what it would refuse.
void check_name(std::string_view name);
void check_text(std::string_view what, std::string_view text, std::size_t limit);
// A lease of at least `shortest`.
Duration parse_lease(std::string_view flag, std::string_view text, Duration shortest);
// The same from 1 ms on, or the word "until-released".
Duration parse_ttl(std::string_view text);

// -n, -w, --fifo, --shared, --limit, --permits, --at-least, --delay-after-loss, --label, --meta
// and NAME. Threads: one.
class Asking {
 public:
  // With one NAME.
  void add_to(Command& command);
  // With one or more of them. Answers the argument.
  Option& add_with_names_to(Command& command);

  // Throws UsageError.
  const std::string& name() const;
  // Each once, in the order of their bytes. Throws UsageError.
  std::vector<std::string> names() const;
  // How long to wait; 0: not at all; empty: as long as it takes. Throws UsageError.
  std::optional<Duration> wait() const;
  // What of LockOptions was said here. Throws UsageError.
  LockOptions lock_options() const;

 private:
  void add_options_to(Command& command);
  // Of LockOptions: the mode, and how many of how many.
  void choose_mode(LockOptions& options) const;

  std::string name_;
  std::vector<std::string> names_;
  std::optional<std::string> wait_, limit_, permits_, at_least_, delay_, label_;
  std::vector<std::string> metadata_;
  bool nonblock_ = false, fifo_ = false, shared_ = false;
};

// One name: one try, or as many as the wait allows. Empty: refused, and `refusal` tells why and who holds it.
std::optional<Lock> ask(Engine& engine, const std::string& name, std::optional<Duration> wait,
                        const LockOptions& options, const std::stop_token& stop, Refusal& refusal);

// Options for an engine of this tool on that connection.
EngineOptions engine_options(const ConnectionOptions& connection);

}  // namespace dlock::tools
