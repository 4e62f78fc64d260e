// What a run and its guardian tell each other.
//
// The guardian is a small process between a run and its command. It ends the command where the run cannot: when the run
// is killed, and when it is stopped past the deadline. It is made while the run has one thread and no connection, so
// that it inherits neither locks of other threads nor sockets. It leads a process group of its own in the run's
// session: what is sent to the command's group or to the run's, ^Z or KILL, does not reach it. The command leads
// another one, as it would under a shell: timeout(1) and shells with job control would otherwise leave for a group that
// is not known here.
#pragma once

#include "command.hpp"

#include <cstdint>

namespace dlock::tools::run {

// To the guardian, once. The command's settings follow, each with a NUL at its end.
struct StartOrder {
  std::int64_t deadline = 0;  // nanoseconds of CLOCK_BOOTTIME
  std::uint32_t settings_size = 0;
  std::uint32_t in_foreground = 0;
};

// To the guardian, as often as it changes: the moment at which everything is to be dead, in nanoseconds of
// CLOCK_BOOTTIME; or this: the run has seen the end of the command, and leaves alone what it left behind.
// The end of the pipe without it: kill everything.
constexpr std::int64_t dismissal = -1;

// From the guardian.
struct ChildReport {
  enum class Kind : std::int32_t { started, stopped, ended };
  Kind kind{};
  std::int32_t value = 0;   // started: the process, or -1; stopped: the signal; ended: the exit status, or 128 + signal
  std::int32_t signal = 0;  // ended: by this signal
  std::int32_t error = 0;   // started, ended: errno, if it could not be started or executed
  std::int32_t at_deadline = 0;  // ended: after the guardian had killed it
};

// The guardian's life; in the new process. Ends it.
[[noreturn]] void guard(const Command& command, int orders, int reports) noexcept;

}  // namespace dlock::tools::run
