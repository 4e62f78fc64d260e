// How to wait for what may hang: it runs on a thread of its own, which is left to itself by those who
// can wait no longer.
#pragma once

#include "types/clock.hpp"
#include "types/thread.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace dlock {

// One call, of one function, for all who want its result. Threads: any. Owns: its thread, for as long as the call takes.
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
    const std::lock_guard guard(mutex_);
    return over_;
  }

  // Whether the caller is the work itself.
  bool is_this() const {
    const std::lock_guard guard(mutex_);
    return !over_ && worker_ == std::this_thread::get_id();
  }

  // Null: it is not over by then, or there was no memory for a result.
  const Result* await(const Deadline& deadline) {
    // Ends only after what is locked below is free again.
    const std::stop_callback stopped(deadline.stop(), [&] {
      const std::lock_guard guard(mutex_);
      changed_.notify_all();
    });
    std::unique_lock guard(mutex_);
    const auto there = [&] { return over_ || deadline.stopped(); };
    while (!changed_.wait_until(guard, countable(deadline.at()), there) && BootClock::now() < deadline.at()) continue;
    return result_ ? &*result_ : nullptr;
  }

 private:
  void run(std::function<Result()> work) {
    {
      const std::lock_guard guard(mutex_);
      worker_ = std::this_thread::get_id();
    }
    std::optional<Result> result;
    try {
      result = work();
    } catch (...) {  // out of memory
    }
    work = nullptr;
    const std::lock_guard guard(mutex_);
    result_ = std::move(result);
    over_ = true;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, but for a result that is there and stays:
  bool over_ = false;
  std::thread::id worker_{};
  std::optional<Result> result_{};
};

}  // namespace dlock
