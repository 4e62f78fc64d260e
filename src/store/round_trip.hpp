// Estimates how long a request takes to the database and back, as the shortest of the last few did: what took longer
// has waited for a lock, or for a disk. And how long an answer is worth waiting for when time is up.
#pragma once

#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>

namespace dlock::store {

// Threads: any. Allocates nothing. Time: microseconds.
class RoundTrip {
 public:
  // A request was answered after this long; or it was not, for so long.
  void note(BootClock::duration took) noexcept { last_.note(took); }
  // It was answered.
  void answered(BootClock::duration took) noexcept {
    last_.note(took);
    answers_.note(took);
  }
  // The answer was that something is locked: that tells how long an answer takes, and nothing of the way.
  void locked(BootClock::duration took) noexcept { answers_.note(took); }

  // 0: nothing was asked yet.
  Duration estimate() const noexcept { return last_.least(); }

  // How long after its caller's time is over an answer is still waited for, so that a clear answer does not become a
  // doubtful one: several times what the slowest of the last answers took, since a server that answers in a millisecond
  // and has said nothing for fifty says nothing at all. `lock_wait`: see dialects::Connection; a quarter of it more is
  // for another connection, where one was silent for so long.
  Duration answer_time(Duration lock_wait) const noexcept {
    const auto least = last_.least(), slowest = answers_.most();
    const auto most = std::max(usual_answer, slow_answers * least) + lock_wait;
    if (slowest == Duration{}) return most;
    return std::clamp(std::max(slow_answers * slowest, lock_wait + std::max(2 * slowest, lock_wait / 4)), prompt_answer,
                      most);
  }

 private:
  static constexpr Duration prompt_answer = std::chrono::milliseconds{50},
                            usual_answer = std::chrono::milliseconds{500};
  static constexpr int slow_answers = 4;

  class Last {
   public:
    void note(BootClock::duration took) noexcept {
      const auto at = count_.fetch_add(1, std::memory_order_relaxed);
      const auto us = std::chrono::floor<Duration>(took).count();
      last_[at % last_.size()].store(std::max<Duration::rep>(us, 1), std::memory_order_relaxed);
    }
    Duration least() const noexcept {
      auto least = std::numeric_limits<Duration::rep>::max();
      for (const auto& one : last_)
        if (const auto us = one.load(std::memory_order_relaxed); us > 0) least = std::min(least, us);
      return Duration{least == std::numeric_limits<Duration::rep>::max() ? 0 : least};
    }
    Duration most() const noexcept {
      Duration::rep most = 0;
      for (const auto& one : last_) most = std::max(most, one.load(std::memory_order_relaxed));
      return Duration{most};
    }

   private:
    std::array<std::atomic<Duration::rep>, 8> last_{};  // 0: nothing was noted there yet
    std::atomic<std::size_t> count_{0};
  };

  Last last_, answers_;
};

}  // namespace dlock::store
