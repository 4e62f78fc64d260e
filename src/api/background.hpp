// Works for an object of the public face on a thread of its own, until that ends.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/process.hpp"
#include "types/thread.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace dlock::api {

// The part that both sides share: what is worked on, and whoever ends it. Threads: any.
class Background {
 public:
  std::stop_token end() const noexcept { return end_.get_token(); }
  bool ending() const noexcept { return end_.stop_requested(); }
  // Whether the caller runs on its thread: in a callback.
  bool is_here() const noexcept {
    const MutexLock guard(mutex_);
    return thread_ == std::this_thread::get_id();
  }
  // The thread's whole life.
  void run(const std::function<void()>& work) {
    {
      const MutexLock guard(mutex_);
      thread_ = std::this_thread::get_id();
    }
    while (!attempt(work)) continue;
    const MutexLock guard(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  void ask_to_end() noexcept { end_.request_stop(); }
  // Unless it is called on the thread itself.
  void await_end() noexcept {
    UniqueMutexLock guard(mutex_);
    if (thread_ == std::this_thread::get_id()) return;
    changed_.wait(guard, [&]() REQUIRES(mutex_) { return over_; });
  }

 private:
  // False: it failed, and is to be begun again.
  bool attempt(const std::function<void()>& work) noexcept {
    try {
      work();
      return true;
    } catch (...) {  // the system has nothing to give, not even a random number: never the end of the process
    }
    if (ending()) return true;
    UniqueMutexLock guard(mutex_);
    changed_.wait_for(guard, std::chrono::milliseconds{100}, [] { return false; });
    return false;
  }

  std::stop_source end_{};
  mutable AnnotatedMutex mutex_{};
  std::condition_variable changed_{};
  std::thread::id thread_ GUARDED_BY(mutex_){};
  bool over_ GUARDED_BY(mutex_) = false;
};

// What the program's callbacks throw is told to one of them, and ends here. The name of whose they are is for people.
class Callbacks {
 public:
  Callbacks(std::string owner, std::function<void(const std::exception&)> on_error)
      : owner_(std::move(owner)), on_error_(std::move(on_error)) {}

  void report(const std::exception& failure) const noexcept {
    try {
      if (on_error_) on_error_(failure);
    } catch (...) {  // there is nobody left to tell
    }
  }
  // False: it threw.
  template <class Call>
  bool run(std::string_view which, Call call) const noexcept {
    try {
      call();
      return true;
    } catch (const std::exception& failure) { report(failure); } catch (...) {
      report_unknown(which);
    }
    return false;
  }

 private:
  void report_unknown(std::string_view which) const noexcept {
    try {
      report(std::runtime_error(fmt::format("{} of {} threw what is no std::exception", which, owner_)));
    } catch (const std::exception& failure) { report(failure); }
  }
  const std::string owner_;
  const std::function<void(const std::exception&)> on_error_;
};

// The object's own part: it starts the thread, and is the last to let go of the state, which has a Background called
// `background` and a run().
template <class State>
struct Worker {
  std::shared_ptr<State> state;
  ForkGuard fork_guard{};
  Thread thread{};

  void start(std::string_view whose) {
    try {
      thread.start([shared = state] { shared->background.run([&] { shared->run(); }); });
    } catch (const std::system_error& error) {
      throw Error(Fault::unavailable, fmt::format("{} has no thread: {}", whose, error.code().message()));
    }
  }
};

}  // namespace dlock::api
