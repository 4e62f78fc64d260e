// This file knows how a thread of the library begins and ends: it sees no signals, and may outlive whoever started it.
#pragma once

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

  void start(std::function<void()> run) {
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread(std::move(run));
    } catch (...) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Waits for the end, which somebody must have asked for; on the thread itself, or after fork(), lets it be.
  void finish() noexcept {
    if (!thread_.joinable()) return;
    if (birthplace_.forked() || thread_.get_id() == std::this_thread::get_id()) thread_.detach();
    else thread_.join();
  }

 private:
  const Birthplace birthplace_;
  std::thread thread_;
};

}  // namespace dlock
