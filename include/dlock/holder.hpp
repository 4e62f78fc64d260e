// This file knows what can be read about one name in the lock table.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/export.hpp>
#include <dlock/token.hpp>

#include <cstddef>
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
};

DLOCK_EXPORT std::string_view to_string(State state) noexcept;

// One row of the table as it was when it was read. For a free or closed row the fields of a holder are empty.
struct Holder {
  std::string name{};
  State state{};
  std::string node{}, owner{}, label{}, metadata{};
  std::string kept{};       // what a holder left for the next ones (Lock::update_metadata), whatever the state
  Token token{};            // of the current grant, or of the last one
  Duration held{};          // since the grant
  Duration left{};          // of the lease; for a closed row, until it opens; negative: expired since
  Duration lease{};         // the length a renewal gives
  int entries = 0;          // entries of reentrant holders; 1 for a plain grant, 0 when not held
  std::size_t waiters = 0;  // those whose waiting is written down: in order of arrival, or while holding something else
};

}  // namespace v0
}  // namespace dlock
