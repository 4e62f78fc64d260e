// How to wait for what may hang: it runs on a thread of its own, which is left to itself by those who
// can wait no longer.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/thread.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace dlock {

// One call, of one function, for all who want its result. Threads: any. Owns: its thread, for as long as the call
// takes.
template <class Result>
class BackgroundCall {
 public:
  // `work` tells in its result what goes wrong; it is gone before the call is over. Throws std::system_error where the
  // system has no thread to give.
  static std::shared_ptr<BackgroundCall> start(std::function<Result()> work) {
    auto call = std::make_shared<BackgroundCall>();
    Thread thread;
    thread.start([call, work = std::move(work)]() mutable { call->run(std::move(work)); });
    thread.let_be();
    return call;
  }

  bool over() const {
    const MutexLock guard(mutex_);
    return over_;
  }

  // Whether the caller is the work itself.
  bool is_this() const {
    const MutexLock guard(mutex_);
    return !over_ && worker_ == std::this_thread::get_id();
  }

  // Null: it is not over by then, or there was no memory for a result.
  const Result* await(const Deadline& deadline) {
    // Ends only after what is locked below is free again.
    const std::stop_callback stopped(deadline.stop(), [&] {
      const MutexLock guard(mutex_);
      changed_.notify_all();
    });
    UniqueMutexLock guard(mutex_);
    const auto there = [&]() REQUIRES(mutex_) { return over_ || deadline.stopped(); };
    while (!changed_.wait_until(guard, countable(deadline.at()), there) && BootClock::now() < deadline.at()) continue;
    return result_ ? &*result_ : nullptr;
  }

 private:
  void run(std::function<Result()> work) {
    {
      const MutexLock guard(mutex_);
      worker_ = std::this_thread::get_id();
    }
    std::optional<Result> result;
    try {
      result = work();
    } catch (...) {  // out of memory
    }
    work = nullptr;
    const MutexLock guard(mutex_);
    result_ = std::move(result);
    over_ = true;
    changed_.notify_all();
  }

  mutable AnnotatedMutex mutex_;
  std::condition_variable changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread::id worker_ GUARDED_BY(mutex_){};
  std::optional<Result> result_ GUARDED_BY(mutex_){};  // one that is there stays
};

}  // namespace dlock
