// This file knows how a command is watched over while it holds a lock.
#pragma once

#include "child.hpp"
#include "contract.hpp"

#include <dlock/lock.hpp>
#include <tools/shared/console.hpp>

#include <optional>

namespace dlock::tools::run {

struct Rules {
  Times times;
  int lost_signal = SIGTERM;
  std::optional<Duration> max_runtime{};
  int signals = -1;  // a signalfd with all signals that are passed on, and SIGCHLD
};

struct Outcome {
  Ended child;
  bool lost = false;      // detected before the child was reaped, or it was reaped after the hard deadline
  bool overtime = false;  // ended because of max_runtime
};

// Until the child has been reaped: passes signals on, and ends the child when the lock is lost or its time is up.
Outcome supervise(Child& child, const Lock& lock, const Rules& rules, Console& console);

}  // namespace dlock::tools::run
