// This file knows the words for the enumerations at dlock's face.
#include <dlock/holder.hpp>
#include <dlock/lock.hpp>

namespace dlock {
inline namespace v0 {

std::string_view to_string(State state) noexcept {
  switch (state) {
    case State::free: return "free";
    case State::held: return "held";
    case State::closed: return "closed";
    case State::expired: return "expired";
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

std::string_view to_string(Released released) noexcept {
  switch (released) {
    case Released::freed: return "freed";
    case Released::still_held: return "still_held";
    case Released::was_lost: return "was_lost";
    case Released::unconfirmed: return "unconfirmed";
  }
  return "unknown";
}

}  // namespace v0
}  // namespace dlock
