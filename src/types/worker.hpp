// A thread that works until it is asked to end, together with what it shares with its owner.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/process.hpp"
#include "types/thread.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <utility>

namespace dlock {

// The base of what the two share: it is there until the owner has let go of it and run() has returned. Made by
// std::make_shared; its owner calls finish() before it lets go. Threads: any. Owns: its thread, which begins with
// start().
struct Worker : std::enable_shared_from_this<Worker> {
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;

  // Starts the thread, unless it is running. Throws std::system_error where the system has no thread to give.
  void start() REQUIRES(mutex) {
    if (running) return;
    auto next = std::make_shared<Thread>();
    // One that has ended by itself may take its time to go, and may need the mutex for that.
    next->start([self = shared_from_this(), last = thread_] {
      if (last) last->finish();
      here_ = self.get();
      const Leaving leaving{*self};
      self->run();
    });
    thread_ = std::move(next);
    ++threads_;
    running = true;
  }
  // False: there is no thread to be had, or no memory for one.
  bool try_start() noexcept REQUIRES(mutex) {
    try {
      start();
    } catch (const std::exception&) { return false; }
    return true;
  }

  // Asks it to end: what it does at its end, until then.
  void close(Instant until = Instant::max()) noexcept EXCLUDES(mutex) {
    if (forked()) return;  // the mutex may be that of a thread which is not here
    {
      const MutexLock guard(mutex);
      closing = true;
      ends_by = std::min(ends_by, until);
    }
    wake();
  }
  // Asks it to end, and waits until it has: not on the thread itself, nor after fork(). What has not ended by `until`
  // is left to itself, and nobody waits for it any more.
  void finish(Instant until = Instant::max()) noexcept EXCLUDES(mutex) {
    close(until);
    if (forked() || is_here()) return;
    std::shared_ptr<Thread> thread;
    {
      UniqueMutexLock guard(mutex);
      while (thread_ && threads_ > 0 && BootClock::now() < until) wait(guard, until);
      thread = std::exchange(thread_, nullptr);
      if (thread && threads_ > 0) thread->let_be();
    }
    if (thread) thread->finish();
  }

  bool forked() const noexcept { return fork_guard_.forked(); }
  // Whether it is the thread itself that asks.
  bool is_here() const noexcept { return here_ == this; }
  bool is_closing() const EXCLUDES(mutex) {
    const MutexLock guard(mutex);
    return closing;
  }

  // Until when it may do what takes so long at most, once it is closing also by when it is to have ended.
  Instant ends_within(Duration longest) const EXCLUDES(mutex) {
    const MutexLock guard(mutex);
    return std::min(ends_by, later(BootClock::now(), longest));
  }

  // For whoever looks again afterwards: ends when it is woken, at `until`, and now and then, since a condition variable
  // does not count suspend.
  void wait(UniqueMutexLock& guard, Instant until = Instant::max()) REQUIRES(mutex) {
    if (until == Instant::max()) changed.wait(guard);
    else changed.wait_until(guard, std::min(until, later(BootClock::now(), std::chrono::seconds{1})));
  }
  // Sleeps for so long, unless it is to end.
  void pause(Duration length) EXCLUDES(mutex) {
    const auto until = later(BootClock::now(), length);
    UniqueMutexLock guard(mutex);
    while (!closing && BootClock::now() < until) wait(guard, until);
  }

  // The thread's whole life. It is to return soon after `closing`; before, if it says so by `running`: then start()
  // begins anew.
  virtual void run() = 0;
  // Makes the thread look at `closing`, wherever it waits.
  virtual void wake() noexcept { changed.notify_all(); }

  mutable AnnotatedMutex mutex;
  std::condition_variable changed;
  bool running GUARDED_BY(mutex) = false, closing GUARDED_BY(mutex) = false;
  Instant ends_by GUARDED_BY(mutex) = Instant::max();  // once it is closing

 private:
  // What a thread does last, also where run() has thrown.
  struct Leaving {
    Worker& worker;
    ~Leaving() {
      here_ = nullptr;  // another worker may have the same address, before this thread has gone
      const MutexLock guard(worker.mutex);
      --worker.threads_;
      worker.changed.notify_all();
    }
  };

  static inline thread_local const Worker* here_ = nullptr;  // whose thread this is
  const ForkGuard fork_guard_;
  std::shared_ptr<Thread> thread_ GUARDED_BY(mutex);  // null: there is none that could be waited for
  int threads_ GUARDED_BY(mutex) = 0;                 // that have not come to their end
};

}  // namespace dlock
