// Who has the terminal, and what ^Z means.
#pragma once

#include <termios.h>

#include <sys/types.h>

namespace dlock::tools::run {

// The controlling terminal, if there is one. Needs SIGTTOU blocked. Threads: one.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Whether standard input is the terminal, and this process in its foreground.
  bool to_be_given() const noexcept;
  // Whether the process group of this process, or that one, is in the foreground.
  bool is_ours() const noexcept;
  bool is_of(pid_t group) const noexcept;

  void give(pid_t group) const noexcept;
  // If that group has it: a shell that has put us into the background keeps it.
  void take_back(pid_t group) const noexcept;
  // If a group has it of which nobody is left. Whether that was so.
  bool take_back_from_the_dead() const;
  // As it was in the beginning, for after a command that had no time to tidy up.
  void restore_modes() const noexcept;

 private:
  int descriptor_;
  bool known_ = false;
  termios modes_{};
};

// Stops this process as ^Z would, until it is continued; does nothing where nobody could continue it (an orphaned
// process group). Needs SIGTSTP blocked in all threads.
enum class Stop { alone, with_its_group };
void stop_this_process(Stop stop) noexcept;

// Ends this process by that signal, so that whoever has started it knows that it was typed; and all of its group, where
// they have heard nothing of it because the command had the terminal. Comes back where the signal ends nobody.
enum class Heard { by_its_group, by_the_command };
void end_as_typed(int signal, Heard heard) noexcept;

}  // namespace dlock::tools::run
