// The run's side of its command: started and guarded by the guardian, signalled from here.
#pragma once

#include "command.hpp"

#include <dlock/duration.hpp>

#include <sys/types.h>

#include <cstdint>

namespace dlock::tools::run {

// How a process ended.
struct Ended {
  int status = 0;            // 0 to 255, or 128 + signal
  int signal = 0;            // that ended it; 0: it exited
  int exec_error = 0;        // errno, if the command could not be executed
  bool at_deadline = false;  // the guardian had killed it
};

// One command under a guardian. Owns: the guardian, the command, and all processes of its group; destroying it kills
// them. Threads: one.
class Child {
 public:
  // Makes the guardian. Only while this process has one thread. Throws std::runtime_error.
  explicit Child(const Command& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Starts the command, which is to be dead at `deadline`, a moment of CLOCK_BOOTTIME. Throws std::runtime_error.
  void start(const Settings& settings, bool in_foreground, Duration deadline);

  // A new deadline, for the guardian.
  void is_to_be_dead_at(Duration deadline) noexcept;

  pid_t group() const noexcept { return group_; }
  // To every process of the group.
  void signal(int number) const noexcept;
  // To the command alone. Until finish(): its number is its own as long as the guardian has not reaped it.
  void signal_command(int number) const noexcept;
  // Whether there is any process of the group left, also after the command itself has ended.
  bool group_lives() const;
  // The same without those who ignore all of these signals (bit n - 1: signal n).
  bool group_heeds(std::uint64_t signals) const;
  bool group_is_stopped() const;

  // Readable when look() has a change to tell.
  int reports() const noexcept { return reports_; }
  // Whether the command has ended or was stopped since the last look. If the guardian is gone, what is left is killed.
  enum class Change { none, stopped, ended };
  Change look();
  const Ended& ended() const noexcept { return ended_; }
  int stopped_by() const noexcept { return stopped_by_; }
  bool guarded() const noexcept { return guarded_; }

  // Ends the guardian, and with it what the command has left behind, or not.
  enum class Rest { left_alone, killed };
  void finish(Rest rest) noexcept;

 private:
  bool send(const void* bytes, std::size_t size) const noexcept;
  Change look_without_guardian();

  pid_t guardian_ = -1, group_ = -1;
  int orders_ = -1, reports_ = -1;
  std::int64_t deadline_ = 0;
  int stopped_by_ = 0;
  bool started_ = false, guarded_ = true, reported_ = false;
  Ended ended_;
};

}  // namespace dlock::tools::run
