// Keeps SIGPIPE from the program while the client library writes.
#pragma once

#include "types/mutant.hpp"

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace dlock::dialects::mysql {

// Where a connection is encrypted, Connector/C writes without MSG_NOSIGNAL, and relies on having switched SIGPIPE off
// for the whole process, which is not a library's to do. While one of these lives, a write to a connection that is gone
// is an error on this thread and nothing else. Threads: that which made it.
class BrokenPipeGuard {
 public:
  explicit BrokenPipeGuard(bool needed = true) noexcept {
    if (!needed || planted("broken_pipe_raised")) return;
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &pipe(), &before);
    if (sigismember(&before, SIGPIPE) != 0) return;  // as on all threads of the engine
    blocked_ = true;
    sigset_t pending;
    pending_before_ = ::sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) != 0;
  }
  ~BrokenPipeGuard() {
    if (!blocked_) return;
    constexpr timespec at_once{};
    if (!pending_before_) ::sigtimedwait(&pipe(), nullptr, &at_once);
    ::pthread_sigmask(SIG_UNBLOCK, &pipe(), nullptr);
  }
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;

 private:
  static const sigset_t& pipe() noexcept {
    static const sigset_t set = [] {
      sigset_t made;
      sigemptyset(&made);
      sigaddset(&made, SIGPIPE);
      return made;
    }();
    return set;
  }

  bool blocked_ = false, pending_before_ = false;
};

// The library's own initialization, once a process, with the process's SIGPIPE left as it is.
void init_library();

}  // namespace dlock::dialects::mysql
