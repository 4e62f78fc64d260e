// How a command is watched over while it holds a lock, or several.
#pragma once

#include "child.hpp"
#include "deadlines.hpp"
#include "held_locks.hpp"
#include "terminal.hpp"

#include "tools/shared/console.hpp"

#include <csignal>
#include <optional>

namespace dlock::tools::run {

struct Rules {
  Times times;
  int lost_signal = SIGTERM;
  std::optional<int> yield_signal{};  // to the command alone, when somebody else waits for one
  std::optional<Duration> max_runtime{};
};

struct Outcome {
  Ended child;
  bool lost = false;      // detected before the child was reaped, or it was reaped after the hard deadline
  bool overtime = false;  // ended because of max_runtime
  int typed = 0;          // SIGINT or SIGQUIT, where it came from the terminal and has ended the command
  Heard heard = Heard::by_the_command;
};

// What wakes the watch. To be made before the command is started: there may be no descriptors left for it.
class Wakers {
 public:
  // Throws std::runtime_error.
  Wakers();
  ~Wakers();
  Wakers(const Wakers&) = delete;
  Wakers& operator=(const Wakers&) = delete;
  int timer() const noexcept { return timer_; }
  int listener() const noexcept { return listener_; }

 private:
  void close() const noexcept;
  const int timer_, listener_;
};

// Until the child has been reaped: passes signals on, and ends the child when a lock is lost or its time is up.
// `signals`: a signalfd with all signals that are passed on, and SIGCHLD. Never waits for a reader: the console is to
// write apart.
Outcome supervise(Child& child, const HeldLocks& locks, const Terminal& terminal, const Rules& rules, int signals,
                  const Wakers& wakers, Console& console);

}  // namespace dlock::tools::run
