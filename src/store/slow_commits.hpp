// Whether writing is so slow that releases and acquires had better share a commit: told by how long batches take. How
// long a leader waits for company then, after how many times its usual time a batch seems to hang; and for how many
// batches none is shared after it was in vain.
#pragma once

#include "store/batch_window.hpp"
#include "store/round_trip.hpp"
#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace dlock::store {

// Where a commit is quick, two connections keep two processors of the server busy, which is worth more than a commit.
// Threads: any. Allocates nothing.
class SlowCommits {
 public:
  // A batch of so many names has written something, and been answered, after this long. What each name takes of that is
  // not the commit's, nor the way's there and back.
  void wrote(BootClock::duration took, std::size_t names) noexcept {
    batches_.note(took - static_cast<int>(names) * time_of_a_name);
    if (pauses()) pause_.fetch_sub(1, std::memory_order_relaxed);
  }
  // One commit for both was undone: some row was locked elsewhere, or somebody asked for what cannot be done. Likely it
  // would be again, and each that is undone costs a round trip.
  void undone() noexcept {
    if (planted("undone_asked_again")) return;
    in_vain_.store(0, std::memory_order_relaxed);
    if (pause_.load(std::memory_order_relaxed) < pause) pause_.store(pause, std::memory_order_relaxed);
  }
  // Such a commit would have saved none, since no name was likely to be free: most are used once, if that goes on. What
  // was under way when a pause began says nothing of the time after it.
  void saves_none() noexcept {
    if (pauses()) return;
    if (in_vain_.fetch_add(1, std::memory_order_relaxed) + 1 >= too_often) undone();
  }
  // One was shared.
  void saved() noexcept { in_vain_.store(0, std::memory_order_relaxed); }
  // Here there is no such thing.
  void never() noexcept { pause_.store(std::numeric_limits<std::int64_t>::max(), std::memory_order_relaxed); }

  // By the quickest of the last few: what took longer has waited for a processor.
  Pace pace() const noexcept {
    const auto batch = batches_.estimate();
    if ((batch <= slow && !planted("quick_commits_shared")) || pauses()) return {};
    return {true, std::min<Duration>(batch / 3, longest_company), several * batch};
  }

 private:
  static constexpr std::chrono::microseconds time_of_a_name{20};
  static constexpr Duration slow = std::chrono::milliseconds{1}, longest_company = std::chrono::milliseconds{1};
  static constexpr int several = 8;
  static constexpr std::int64_t pause = 64;  // batches
  static constexpr int too_often = 4;

  bool pauses() const noexcept { return pause_.load(std::memory_order_relaxed) > 0; }

  RoundTrip batches_;
  std::atomic<std::int64_t> pause_{0};
  std::atomic<int> in_vain_{0};  // batches, one after the other
};

}  // namespace dlock::store
