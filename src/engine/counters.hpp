// Counts what an engine does. No counter is guarded, nor waits for another one.
#pragma once

#include "types/failure.hpp"

#include <dlock/event.hpp>
#include <dlock/stats.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dlock::engine {

// Only grows. Threads: any.
class Counter {
 public:
  void add(std::uint64_t by = 1) noexcept { count_.fetch_add(by, std::memory_order_relaxed); }
  std::uint64_t read() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
};

// A Histogram that threads add to. Threads: any.
class HistogramCounter {
 public:
  void add(Duration took) noexcept {
    const auto& bounds = Histogram::bounds;
    const auto bound = std::lower_bound(bounds.begin(), bounds.end(), took);
    counts_[static_cast<std::size_t>(bound - bounds.begin())].add();
    sum_.add(static_cast<std::uint64_t>(std::max(took, Duration{}).count()));
  }
  Histogram read() const noexcept {
    Histogram histogram;
    std::transform(counts_.begin(), counts_.end(), histogram.counts.begin(),
                   [](const Counter& each) { return each.read(); });
    histogram.sum = Duration{static_cast<Duration::rep>(sum_.read())};
    return histogram;
  }

 private:
  std::array<Counter, Histogram::bounds.size() + 1> counts_{};
  Counter sum_{};  // of microseconds
};

// One counter for each of an enumeration, which ends with `last`.
template <class Enum, Enum last>
class CounterOfEach {
 public:
  static constexpr std::size_t size = static_cast<std::size_t>(last) + 1;

  Counter& of(Enum each) noexcept { return counts_[static_cast<std::size_t>(each)]; }
  std::uint64_t read(Enum each) const noexcept { return counts_[static_cast<std::size_t>(each)].read(); }
  template <class See>
  void for_each(See see) const {
    for (std::size_t i = 0; i < size; ++i) see(static_cast<Enum>(i), counts_[i].read());
  }

 private:
  std::array<Counter, size> counts_{};
};

// Threads: any. A grant is two additions, a release two, and any other answer one.
struct Counters {
  static constexpr std::size_t cache_line = 64;

  // Of every acquire and release: on lines of their own.
  alignas(cache_line) HistogramCounter waited{};
  alignas(cache_line) Counter ended{};  // leases that are held no more: let go of, or known to be lost
  CounterOfEach<Event::Kind, Event::Kind::deadlock>
      events{};  // whether or not anybody observes; but for `granted`, `lost`
  alignas(cache_line) Counter adopted{};
  CounterOfEach<Loss, Loss::max_hold> lost{};
  CounterOfEach<RetryCause, RetryCause::other> retried{};
  Counter renewals{}, events_dropped{};
  HistogramCounter rounds{};
};

inline RetryCause retry_cause(Cause cause) noexcept {
  switch (cause) {
    case Cause::refused: return RetryCause::refused;
    case Cause::disconnected: return RetryCause::disconnected;
    case Cause::timed_out: return RetryCause::timed_out;
    case Cause::locked: return RetryCause::locked;
    case Cause::deadlock: return RetryCause::deadlock;
    case Cause::serialization: return RetryCause::serialization;
    case Cause::read_only: return RetryCause::read_only;
    case Cause::stale_statement: return RetryCause::stale_statement;
    case Cause::schema:
    case Cause::permission:
    case Cause::rejected: break;
  }
  return RetryCause::other;
}

}  // namespace dlock::engine
