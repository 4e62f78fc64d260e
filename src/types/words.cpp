// The words for the enumerations at dlock's face.
#include <dlock/event.hpp>
#include <dlock/holder.hpp>
#include <dlock/lock.hpp>
#include <dlock/options.hpp>
#include <dlock/reaping.hpp>
#include <dlock/refusal.hpp>
#include <dlock/schema.hpp>
#include <dlock/stats.hpp>

namespace dlock {
inline namespace v0 {

std::string_view to_string(State state) noexcept {
  switch (state) {
    case State::free: return "free";
    case State::held: return "held";
    case State::closed: return "closed";
    case State::expired: return "expired";
    case State::locked: return "locked";
  }
  return "unknown";
}

std::string_view to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::released: return "released";
    case Outcome::expired: return "expired";
    case Outcome::forced: return "forced";
    case Outcome::taken_over: return "taken_over";
  }
  return "unknown";
}

std::string_view to_string(Loss loss) noexcept {
  switch (loss) {
    case Loss::refused: return "refused";
    case Loss::unconfirmed: return "unconfirmed";
    case Loss::forced: return "forced";
    case Loss::max_hold: return "max_hold";
  }
  return "unknown";
}

std::string_view to_string(Refused why) noexcept {
  switch (why) {
    case Refused::busy: return "busy";
    case Refused::locked: return "locked";
    case Refused::timed_out: return "timed_out";
    case Refused::stopped: return "stopped";
  }
  return "unknown";
}

std::string_view to_string(Released released) noexcept {
  switch (released) {
    case Released::freed: return "freed";
    case Released::still_held: return "still_held";
    case Released::was_lost: return "was_lost";
    case Released::unconfirmed: return "unconfirmed";
  }
  return "unknown";
}

std::string_view to_string(Event::Kind kind) noexcept {
  switch (kind) {
    case Event::Kind::granted: return "granted";
    case Event::Kind::released: return "released";
    case Event::Kind::lost: return "lost";
    case Event::Kind::trust_low: return "trust_low";
    case Event::Kind::retried: return "retried";
    case Event::Kind::abandoned: return "abandoned";
    case Event::Kind::reconnected: return "reconnected";
    case Event::Kind::weak_durability: return "weak_durability";
    case Event::Kind::busy: return "busy";
    case Event::Kind::timed_out: return "timed_out";
    case Event::Kind::renewed_late: return "renewed_late";
    case Event::Kind::deadlock: return "deadlock";
  }
  return "unknown";
}

std::string_view to_string(Reentrance reentrance) noexcept {
  switch (reentrance) {
    case Reentrance::thread: return "thread";
    case Reentrance::node: return "node";
    case Reentrance::none: return "none";
  }
  return "unknown";
}

std::string_view to_string(Fairness fairness) noexcept {
  switch (fairness) {
    case Fairness::barging: return "barging";
    case Fairness::fifo: return "fifo";
  }
  return "unknown";
}

std::string_view to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::exclusive: return "exclusive";
    case Mode::shared: return "shared";
    case Mode::permits: return "permits";
    case Mode::node: return "node";
  }
  return "unknown";
}

std::string_view to_string(RetryCause cause) noexcept {
  switch (cause) {
    case RetryCause::refused: return "refused";
    case RetryCause::disconnected: return "disconnected";
    case RetryCause::timed_out: return "timed_out";
    case RetryCause::locked: return "locked";
    case RetryCause::deadlock: return "deadlock";
    case RetryCause::serialization: return "serialization";
    case RetryCause::read_only: return "read_only";
    case RetryCause::stale_statement: return "stale_statement";
    case RetryCause::conflict: return "conflict";
    case RetryCause::other: return "other";
  }
  return "unknown";
}

std::string_view to_string(ReapProgress::Phase phase) noexcept {
  switch (phase) {
    case ReapProgress::Phase::turn: return "turn";
    case ReapProgress::Phase::settling: return "settling";
    case ReapProgress::Phase::grace: return "grace";
    case ReapProgress::Phase::removing: return "removing";
  }
  return "unknown";
}

std::string_view to_string(Removal removal) noexcept {
  switch (removal) {
    case Removal::removed: return "removed";
    case Removal::absent: return "absent";
    case Removal::in_use: return "in_use";
    case Removal::wanted: return "wanted";
    case Removal::stopped: return "stopped";
  }
  return "unknown";
}

namespace schema {

std::string_view to_string(Role role) noexcept {
  switch (role) {
    case Role::migrator: return "migrator";
    case Role::runtime: return "runtime";
    case Role::read_only: return "read_only";
  }
  return "unknown";
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
