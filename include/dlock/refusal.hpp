// Why a call was granted nothing, although nothing is broken.
#pragma once

#include <dlock/export.hpp>
#include <dlock/holder.hpp>

#include <string_view>

namespace dlock {
inline namespace v0 {

// Why a call was granted nothing.
enum class Refused {
  busy,       // somebody holds the name, or it is closed, or others queue for it
  locked,     // nobody is seen to hold it, but another transaction has its row locked
  timed_out,  // it was busy or locked until the wait was over
  stopped,    // the stop token was
};

DLOCK_EXPORT std::string_view to_string(Refused why) noexcept;

// The same, and who was in the way: read right after the answer, which takes a second at most, so that the lock may be
// free by then.
// Threads: as a value.
struct Refusal {
  Refused why{};
  Holder holder{};  // as Engine::inspect would tell; only its name where the call was stopped, or the row was not read
};

}  // namespace v0
}  // namespace dlock
