// Decides how long the leader of a batch waits for others: for what is under way, and then until nearly all have come
// back; a quarter of its time at most. Where a fuller batch is worth that: slow_commits.hpp.
#pragma once

#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

namespace dlock::store {

// How batches leave.
struct Pace {
  bool shared = false;            // of both kinds, and one after the other
  BootClock::duration company{};  // for so long at most a leader waits for those who are about to come
  BootClock::duration hung{};     // what is under way for so long is waited for no more
};

// A leader waits until what is under way has its answer, or seems to hang, and then until nearly all who had one have
// come back; or not so long, also where there are enough for a batch.
//
// Threads: one at a time. There is one leader at a time, and a batch leaves before the next leader comes.
class BatchWindow {
 public:
  // `most`: so many requests fill a batch.
  // `crowd`: how many asked at once, when something arrived last, of all who use the same connections.
  BatchWindow(std::size_t most, std::atomic<std::size_t>& crowd) : most_(most), crowd_(crowd) {}

  // For a leader who has time until `deadline`. A quarter of that at most: the rest is for the batch.
  void open(const Pace& pace, Instant now, Instant deadline) {
    departures_.reserve(departures_.size() + 1);
    end_ = later(now, (deadline - now) / 4);
    pace_ = pace;
    if (planted("hung_waited_for")) pace_.hung = BootClock::duration::max();
    awaited_ = pace.shared ? Awaited::under_way : Awaited::nobody;
  }
  void close() noexcept { awaited_ = Awaited::nobody; }
  bool is_open() const noexcept { return awaited_ != Awaited::nobody; }

  // Until when the leader waits if nothing else happens; not after `now`: it is closed. `queued`: how many there are,
  // the leader among them.
  Instant closes_at(std::size_t queued, Instant now) noexcept {
    if (awaited_ == Awaited::under_way) {
      const auto end = std::min(all_hang_at(now), end_);
      if (queued < most_ && now < end) return end;
      awaited_ = expects_others() ? Awaited::company : Awaited::nobody;
      end_ = std::min(end_, later(now, pace_.company));
    }
    if (awaited_ == Awaited::company) {
      if (!suffice(queued) && now < end_) return end_;
      if (2 * queued < crowd_.load(std::memory_order_relaxed)) lonely_ = pause;
    }
    close();
    return Instant::min();
  }
  // Whether so many are what the leader waits for.
  bool suffice(std::size_t queued) const noexcept {
    if (queued >= most_) return true;
    return awaited_ == Awaited::company &&
           (planted("nobody_waited_for") || 8 * queued >= 7 * crowd_.load(std::memory_order_relaxed));
  }

  // A batch of so many leaves, for whose leader it was opened. It is under way until it has arrived.
  void leaves(Instant now, std::size_t requests) noexcept { departures_.push_back({now, requests}); }
  // Those whose answers it has are likely to come back. `queued`: how many wait meanwhile.
  void arrived(Instant departed, std::size_t queued) noexcept {
    const auto batch = std::ranges::find(departures_, departed, &Departure::at);
    crowd_.store(batch->requests + queued, std::memory_order_relaxed);
    departures_.erase(batch);
  }
  // How many are under way with the request of another one.
  std::size_t under_way() const noexcept {
    std::size_t requests = 0;
    for (const auto& batch : departures_) requests += batch.requests - 1;
    return requests;
  }

 private:
  enum class Awaited { nobody, under_way, company };
  struct Departure {
    Instant at{};
    std::size_t requests = 0;
  };
  static constexpr int pause = 8;  // batches

  // From when on all that is under way seems to hang.
  Instant all_hang_at(Instant now) const noexcept {
    if (departures_.empty()) return Instant::min();
    return later(planted("hung_waited_for_again") ? now : departures_.back().at, pace_.hung);
  }
  // Not for a while where few came the last time.
  bool expects_others() noexcept {
    if (lonely_ == 0) return true;
    --lonely_;
    return false;
  }

  const std::size_t most_;
  std::atomic<std::size_t>& crowd_;
  Awaited awaited_ = Awaited::nobody;
  Pace pace_{};
  Instant end_{};                        // the leader waits no longer
  std::vector<Departure> departures_{};  // of what has not arrived, in their order
  int lonely_ = 0;                       // so many batches more nobody is waited for: few came the last time
};

}  // namespace dlock::store
