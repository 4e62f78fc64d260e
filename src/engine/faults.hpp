// What the engine makes of a failed statement: which fault a caller gets of which cause, when that is in_doubt, and
// what is told of several attempts. Which causes may pass by themselves: types/failure.hpp.
#pragma once

#include "types/failure.hpp"

#include <dlock/error.hpp>

namespace dlock::engine {

// Whether the same question may succeed if it is asked again a little later.
bool is_transient(Fault fault) noexcept;

// Whether what was asked for may have been done, now or later, by an attempt that got no answer. Who asks keeps it,
// since it has to be known also where the asking ends by an exception. Threads: one.
class Doubt {
 public:
  constexpr Doubt(bool doubted = false) noexcept : doubted_(doubted) {}
  constexpr explicit operator bool() const noexcept { return doubted_; }
  void add(const Failure& failure) noexcept { doubted_ = doubted_ || failure.may_have_run(); }

 private:
  bool doubted_;
};

// The failure of the last attempt, as the caller sees it. `doubt`: that of all of them.
Error to_error(const Failure& failure, Doubt doubt);

// Whether it tells of the database, or of the way to it. What was not even sent, for want of a connection or of time,
// tells only that.
bool is_telling(const Failure& failure) noexcept;

// The last of several failures of one question, after an earlier one that was telling: both, as a failure like that
// one.
Failure after_telling(const Failure& earlier, const Failure& last);

}  // namespace dlock::engine
