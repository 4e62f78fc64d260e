// What the tests of deadlocks have in common: the other one, and how a wait ended.
#pragma once

#include "support/database.hpp"
#include "support/eventually.hpp"

#include <latch>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace dlock::test {

// Longer than a deadlock needs to be found, several times over.
inline constexpr Duration long_enough = std::chrono::seconds{4};

// How a wait ended: "granted", "busy", or what was thrown. `wait` answers whether it was granted.
template <class Wait>
std::string outcome(Wait wait) {
  std::string told;
  const auto thrown = thrown_by([&] { told = wait() ? "granted" : "busy"; });
  return thrown.fault ? thrown.text : told;
}

// Whether so many have said in a row that they wait.
inline bool waits(Database& database, int how_many) {
  return eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") >= how_many; });
}

// A thread that holds "B" and waits for "A", until it is told to stop, or a job: then another thread has taken "B".
class HoldsBWantsA {
 public:
  explicit HoldsBWantsA(Engine engine, LockOptions options = {})
      : engine_(std::move(engine)), options_(std::move(options)) {
    if (options_.job) b_ = engine_.lock("B", options_);
    thread_ = std::jthread([this](const std::stop_token& stop) {
      if (b_) return want(stop);
      const auto b = engine_.lock("B", options_);  // a Lock that was moved would be nobody's
      want(stop);
    });
    holds_.wait();
  }

  // How the wait ended.
  std::string stop() {
    thread_.request_stop();
    return join();
  }
  std::string join() {
    if (thread_.joinable()) thread_.join();
    return told_;
  }

 private:
  void want(const std::stop_token& stop) {
    holds_.count_down();
    told_ = outcome([&] { return engine_.lock(stop, "A", options_).has_value(); });
    b_.reset();
  }

  Engine engine_;
  const LockOptions options_;
  std::optional<Lock> b_{};
  std::latch holds_{1};
  std::string told_{};
  std::jthread thread_{};
};

}  // namespace dlock::test
