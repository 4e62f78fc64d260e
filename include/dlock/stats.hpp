// What an engine has done, and what it does at this moment, in numbers: Engine::stats. And the bounds of its
// histograms.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/export.hpp>
#include <dlock/lock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// Why something was asked again.
enum class RetryCause {
  refused,          // no connection could be made
  disconnected,     // the connection broke
  timed_out,        // no answer, or no connection, in time
  locked,           // the row, or the file, was locked by another transaction
  deadlock,         // the database ended the statement to break a deadlock of transactions
  serialization,    // the database could not order the transaction among others
  read_only,        // the server took no writes
  stale_statement,  // a prepared statement was not known on the connection (a pooler in between)
  conflict,         // with_fence ran the caller's transaction again
  other,            // what asking again may not help against, in the background, where it is asked again all the same
};

DLOCK_EXPORT std::string_view to_string(RetryCause cause) noexcept;

// Durations, counted by how long they were. The bounds are fixed, so that those of several processes can be added up.
struct Histogram {
  static constexpr std::array<Duration, 19> bounds{
      Duration{100},        Duration{250},        Duration{500},        Duration{1'000},      Duration{2'500},
      Duration{5'000},      Duration{10'000},     Duration{25'000},     Duration{50'000},     Duration{100'000},
      Duration{250'000},    Duration{500'000},    Duration{1'000'000},  Duration{2'500'000},  Duration{5'000'000},
      Duration{10'000'000}, Duration{30'000'000}, Duration{60'000'000}, Duration{300'000'000}};  // 100 us to 5 min

  // counts[i]: not longer than bounds[i], and longer than the bound before. The last one: longer than all bounds.
  std::array<std::uint64_t, bounds.size() + 1> counts{};
  Duration sum{};  // of all of them

  std::uint64_t count() const noexcept { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }
};

// A snapshot of one engine, put together from counters that go on meanwhile: each number is right for some moment
// during the call, sums (requests in flight) for several. Nothing is missed; a hand-over to a thread that gives up just
// then is both granted and timed out. A Histogram's count() is always that of its own counts.
struct Stats {
  // ---- Now

  // Leases that this engine holds: granted or adopted, not let go of, not known to be lost. Entries of a thread are
  // one; with Reentrance::node each is one, and the last counts as released. Locks of a caller's transaction are none.
  std::size_t leases = 0;
  // How many wait, for each name that somebody here waits for: threads in lock, try_lock_for, wait_free and
  // try_lock_in, and asynchronous calls.
  std::map<std::string, std::size_t, std::less<>> waiting{};
  // Requests of this engine that have no answer yet: under way, or waiting for a connection, alone or to share a
  // statement.
  std::size_t requests_in_flight = 0;
  // Of the pool; the one that listens for releases is not of it.
  struct Connections {
    unsigned limit = 0;          // EngineOptions::connections
    unsigned open = 0;           // in use, or idle
    unsigned in_use = 0;         // with a request
    std::size_t waited_for = 0;  // threads that wait for one
  } connections{};

  // ---- Since the engine was opened: these only grow

  std::uint64_t adopted = 0;             // by Engine::adopt
  std::uint64_t released = 0;            // also those that could not be confirmed
  std::uint64_t busy = 0;                // answers to those who do not wait
  std::uint64_t timed_out = 0;           // waits for a lock that ended on their deadline
  std::uint64_t deadlocks = 0;           // waits that ended with Error{deadlock}
  std::uint64_t renewals = 0;            // of a lease each, confirmed to the renewer; not Lock::extend, nor a fence
  std::uint64_t renewed_late = 0;        // of these: Event::Kind::renewed_late
  std::uint64_t abandoned = 0;           // leases of anybody that this engine's reaper has reported
  std::uint64_t reconnected = 0;         // times that one could be opened again after failures
  std::uint64_t events_dropped = 0;      // that an observer did not get to in time
  std::map<Loss, std::uint64_t> lost{};  // with an entry for each Loss
  std::map<RetryCause, std::uint64_t> retried{};  // with an entry for each RetryCause
  // Commits that carried several acquires, or releases, or both (EngineOptions::combine).
  struct Batches {
    std::uint64_t sent = 0, requests = 0;
    double mean_size() const noexcept {
      return sent == 0 ? 0 : static_cast<double>(requests) / static_cast<double>(sent);
    }
  } batches{};
  // How long grants took, each from the call to the grant: one for each lease that was granted, however it was.
  Histogram waited{};
  // How long the rounds of the renewer took, each of all leases that were due.
  Histogram rounds{};

  std::uint64_t granted() const noexcept { return waited.count(); }
};

}  // namespace v0
}  // namespace dlock
