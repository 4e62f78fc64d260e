// How a lock goes from hand to hand along a line of threads of one engine.
#pragma once

#include "support/eventually.hpp"

#include <dlock/dlock.hpp>

#include <doctest/doctest.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dlock::test {

// Threads that wait for "job" in this order, one for each wish, while somebody holds it. Each hands out what it is
// granted, and ends. Threads: one.
class Relay {
 public:
  Relay(Engine& engine, const std::vector<LockOptions>& wishes) {
    std::size_t waiting = engine.stats().waiting["job"];
    for (const auto& wish : wishes) {
      threads_.emplace_back([this, &engine, wish] {
        std::optional<Lock> lock;
        try {
          lock = engine.try_lock_for("job", std::chrono::minutes{2}, wish);
        } catch (const std::exception& error) { MESSAGE("a thread of the relay: " << error.what()); }
        const std::lock_guard guard(mutex_);
        if (lock) granted_.push_back(std::move(*lock));
        came_.notify_all();
      });
      ++waiting;
      REQUIRE(eventually([&] { return engine.stats().waiting["job"] == waiting; }));
    }
  }

  // The next grant, when it comes.
  Lock next() {
    std::unique_lock guard(mutex_);
    REQUIRE(came_.wait_for(guard, far_longer(), [&] { return !granted_.empty(); }));
    auto lock = std::move(granted_.front());
    granted_.pop_front();
    return lock;
  }
  bool any() {
    const std::lock_guard guard(mutex_);
    return !granted_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Lock> granted_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace dlock::test
