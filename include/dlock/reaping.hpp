// What a whole pass of the reaper is asked for, and how far it is.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/export.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// How far a pass of the reaper is.
struct ReapProgress {
  enum class Phase {
    turn,      // another reaper is at work; waits for its turn
    settling,  // frees leases that expired without release; `done`: how many
    grace,     // the floor is raised; waits, still for `left`, before anything may be removed
    removing,  // `done` of `total` rows, as far as they can be counted before
  };
  Phase phase{};
  std::size_t done = 0, total = 0;
  Duration left{};
};

DLOCK_EXPORT std::string_view to_string(ReapProgress::Phase phase) noexcept;

// One whole pass over the table, see Engine::reap_all.
struct Reaping {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  std::string glob = "*";   // only names that match this shell pattern
  std::size_t limit = all;  // removes at most so many rows, and settles at most so many leases
  bool dry_run = false;     // counts what it would do, and writes nothing
  std::function<void(const ReapProgress&)> progress{};  // called by the calling thread, some times a second
};

// What became of Engine::remove.
enum class Removal {
  removed,  // the row is gone
  absent,   // there was none
  in_use,   // held, closed, expired and not settled yet, locked by a transaction, or used while the grace ran
  wanted,   // free, but somebody waits for it, or said so a moment ago
  stopped,  // by the caller, before anything was removed
};

DLOCK_EXPORT std::string_view to_string(Removal removal) noexcept;

}  // namespace v0
}  // namespace dlock
