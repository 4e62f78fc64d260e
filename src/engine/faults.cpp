// The way from a cause to a fault.
#include "engine/faults.hpp"

#include "types/mutant.hpp"

#include <fmt/format.h>

namespace dlock::engine {

bool is_transient(Fault fault) noexcept {
  return fault == Fault::unavailable || fault == Fault::timeout || fault == Fault::in_doubt;
}

bool is_telling(const Failure& failure) noexcept {
  if (failure.cause() == Cause::refused) return false;
  return failure.cause() != Cause::timed_out || failure.may_have_run() || !failure.code().empty();
}

Failure after_telling(const Failure& earlier, const Failure& last) {
  const auto& known = last.cause() == Cause::refused ? last : earlier;
  return {known.cause(), fmt::format("{}; when asked again: {}", earlier.what(), last.what()), earlier.code()};
}

Error to_error(const Failure& failure, Doubt doubt) {
  const bool in_doubt = doubt && !planted("doubt_called_failure");
  const auto fault = [&] {
    switch (failure.cause()) {
      case Cause::schema: return Fault::schema;
      case Cause::permission: return Fault::permission;
      case Cause::rejected: return Fault::misuse;
      case Cause::refused:
      case Cause::disconnected:
      case Cause::read_only: return in_doubt ? Fault::in_doubt : Fault::unavailable;
      case Cause::timed_out:
      case Cause::locked:
      case Cause::deadlock:
      case Cause::serialization:
      case Cause::stale_statement: return in_doubt ? Fault::in_doubt : Fault::timeout;
    }
    return Fault::unavailable;
  }();
  return Error(fault, failure.what(), failure.code());
}

}  // namespace dlock::engine
