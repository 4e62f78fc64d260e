// Works for an object of the public face on a thread of its own, until that ends.
#pragma once

#include "types/worker.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace dlock::api {

// What works, until it is asked to end: the base of what the object and its thread share. Threads: any.
class Background : public Worker {
 public:
  std::stop_token end() const noexcept { return end_.get_token(); }
  bool ending() const noexcept { return end_.stop_requested(); }
  // For `whose`, in words.
  void start(std::string_view whose) {
    const MutexLock guard(mutex);
    try {
      Worker::start();
    } catch (const std::system_error& error) {
      throw Error(Fault::unavailable, fmt::format("{} has no thread: {}", whose, error.code().message()));
    }
  }

 private:
  virtual void work() = 0;
  // What fails is begun again.
  void run() final {
    for (;; pause(std::chrono::milliseconds{100})) try {
        return work();
      } catch (...) {  // the system has nothing to give, not even a random number: never the end of the process
        if (ending()) return;
      }
  }
  void wake() noexcept final {
    end_.request_stop();
    changed.notify_all();
  }

  std::stop_source end_{};
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

}  // namespace dlock::api
