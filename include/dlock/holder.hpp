// What can be read about one name in the lock table.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/export.hpp>
#include <dlock/options.hpp>
#include <dlock/token.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// Where a row of the table stands, by the database's clock.
enum class State {
  free,     // anybody may take it
  held,     // under a live lease
  closed,   // not held, but inside its at-least time
  expired,  // the lease ended without a release; the next acquire takes it over
  locked,   // nobody is seen to hold it, but another transaction has its row locked: told by a call that was granted
            // nothing (Refusal), since what only looks waits for no lock and sees none
};

DLOCK_EXPORT std::string_view to_string(State state) noexcept;

// How a grant ended.
enum class Outcome {
  released,    // its holder gave it back, or the transaction it was for has ended
  expired,     // the lease ended without a release
  forced,      // somebody released it by force
  taken_over,  // in a history only: the lease ended without a release, and the next holder took the name over; or
               // another engine of the same node took its place (EngineOptions::node_exclusive)
};

DLOCK_EXPORT std::string_view to_string(Outcome outcome) noexcept;

// The last grant of a name that nobody holds.
// Where several held it together: from when the first of them came until the last one was gone, and of that one;
// or, where leases ended without a release, of the one whose lease ended last.
struct LastRun {
  std::string node{}, label{};                       // of who held it
  std::chrono::sys_time<Duration> begun{}, ended{};  // by the database's clock
  Outcome outcome{};
  std::string reason{};  // of a release by force, as it was said; may be empty
};

// One grant that has ended. See Engine::history.
struct HistoryEntry {
  Mode mode{};  // in which it was held; of several, each has an entry of its own
  Token token{};
  std::string owner{};                               // empty: a transaction held it, without a lease
  std::string node{}, label{};                       // of who held it
  std::chrono::sys_time<Duration> begun{}, ended{};  // by the database's clock
  Outcome outcome{};
  std::string reason{};  // of a release by force, as it was said; may be empty
};

// One row of the table as it was when it was read. For a free row, and a closed one that was given back, the fields of
// a holder are empty; a lease that has ended within its at-least time is closed, and they say whose it was.
struct Holder {
  std::string name{};
  State state{};
  std::string node{}, owner{}, label{}, metadata{};
  std::string kept{};  // what a holder left for the next ones (Lock::update_metadata), whatever the state
  Token token{};       // of the current grant, or of the last one
  Duration held{};     // since the grant
  Duration left{};     // of the lease; for a closed row, until it opens; negative: expired since
  Duration lease{};    // the length a renewal gives; of several, the longest that one came with
  std::optional<LastRun>
      last_run{};  // unless held; the next grant writes over it, also one that takes over what expired
  // In which it is held. Where several hold it, owner and token are none of theirs, and the node and the label those of
  // the last one that came; but the entries of a node have this token and node, the label is that of the first that is
  // there, and the metadata are those of the first, or what one of them wrote last.
  Mode mode = Mode::exclusive;
  // It may go from hand to hand in its process without being written here (EngineOptions::hand_overs.local): the token
  // may be ahead of its holder's, and it has been held since the first of these grants.
  bool passed_on = false;
  int entries = 0;  // those who share it, or the entries of a node; 1 for an exclusive grant, 0 when not held
  // With Mode::permits: how many are taken now, also by who gave back within its at-least time; and how many there are,
  // as the last one that came has said. 0: it is held otherwise, or by nobody.
  std::int64_t permits = 0, limit = 0;
  std::size_t waiters = 0;  // those whose waiting is written down: in order of arrival, or while holding something else
};

}  // namespace v0
}  // namespace dlock
