// How a tool waits for a lock without being deaf to signals.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <stop_token>
#include <string_view>

namespace dlock::tools {

// The signals of this process, blocked in all threads and read through a descriptor. To be made before any engine.
// Given back at its end.
class Signals {
 public:
  // `also_blocked`: more of them, which are never read.
  explicit Signals(std::initializer_list<int> also_blocked = {});
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  int descriptor() const noexcept { return descriptor_; }
  // The mask this process was started with: a child's.
  const sigset_t& mask_before() const noexcept { return before_; }
  // Those of HUP, INT and QUIT that were ignored when this process was started, by nohup or as a script's "&" without
  // job control: neither this process nor its child hears them.
  const sigset_t& ignored() const noexcept { return ignored_; }
  // For a command that has only to say yet what came of it, to a reader that may not read. From now on HUP, INT, QUIT
  // or TERM leaves it a second for that; then this process leaves with 128 + n. `received`: the signal that has come
  // already, whose second begins now; 0: none has. Needs no thread.
  void restore(int received = 0) const noexcept;
  // For a command that has to know whether what it writes was read. From now on HUP, INT, QUIT or TERM interrupts the
  // write(2) that this thread is in (EINTR), and those that it begins; after a second this process leaves with 128 + n.
  void interrupt_writes() const noexcept;
  // While one of these lives, a process that leaves as a second is over writes this line, of 256 bytes at most, to
  // standard error before.
  class ExitMessage {
   public:
    explicit ExitMessage(std::string_view line) noexcept;
    ~ExitMessage();
    ExitMessage(const ExitMessage&) = delete;
    ExitMessage& operator=(const ExitMessage&) = delete;
  };
  // The signal that has come since; 0: none has.
  static int received() noexcept;
  // Forgets it: it does not end this process.
  static void forget() noexcept;

 private:
  sigset_t before_{}, ignored_{};
  int descriptor_ = -1;
};

// Runs `work` on a thread of its own until it is done, or HUP, INT, QUIT or TERM arrives: then its token is stopped.
// Answers 0, or the signal, also if the work came to its end together with it. If the work does not end within 80 ms,
// `farewell` is called with the signal and this process leaves with 128 + n, whatever the database is doing.
// Exceptions of `work` come out here. However it ends, also for the farewell, the signals are given back: what is left
// to be done is to say what came of the work, and to leave.
int wait_for(const Signals& signals, const std::function<void(std::stop_token)>& work,
             const std::function<void(int)>& farewell = {});

// The same for a command that has more to do afterwards, and gives the signals back later: meanwhile they are blocked.
// `patience`: for how long the statement under way is waited for.
int wait_and_go_on(const Signals& signals, const std::function<void(std::stop_token)>& work,
                   const std::function<void(int)>& farewell = {},
                   std::chrono::milliseconds patience = std::chrono::milliseconds{80});

}  // namespace dlock::tools
