// Runs the library's threads, which see no signals of the program's and may outlive whoever started them.
#pragma once

#include "types/mutant.hpp"
#include "types/process.hpp"

#include <pthread.h>

#include <csignal>
#include <functional>
#include <thread>
#include <utility>

namespace dlock {

// Owns a thread whose function keeps what it needs alive by itself (it holds shared pointers), because the last owner
// of an engine may die on one of the engine's own threads, where it cannot wait for itself.
class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { finish(); }

  bool started() const noexcept { return thread_.joinable(); }
  bool is_this() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }

  // Throws std::system_error where the system has no thread to give.
  void start(std::function<void()> run) {
    sigset_t others, before;
    sigfillset(&others);
    // What a thread's own fault raises is the program's crash handler's affair; blocked, it kills without a report.
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
      if (!planted("own_faults_blocked")) sigdelset(&others, own);
    ::pthread_sigmask(SIG_SETMASK, &others, &before);
    try {
      thread_ = std::thread([run = std::move(run)] {
        try {
          run();
        } catch (...) {  // out of memory, in a thread that has not seen to it by itself: never the end of the process
          if (planted("exception_leaves_thread")) throw;
        }
      });
    } catch (...) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Waits for the end, which somebody must have asked for; on the thread itself, or after fork(), lets it be.
  void finish() noexcept {
    if (!thread_.joinable()) return;
    if (fork_guard_.forked() || is_this()) thread_.detach();
    else thread_.join();
  }

  // Nobody waits for its end any more.
  void let_be() noexcept {
    if (thread_.joinable()) thread_.detach();
  }

 private:
  const ForkGuard fork_guard_;
  std::thread thread_;
};

}  // namespace dlock
