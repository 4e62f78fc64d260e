// Who is in the way of an attempt that was granted nothing.
#include "engine/core.hpp"
#include "types/name.hpp"

#include <dlock/attempt.hpp>
#include <dlock/error.hpp>

#include <fmt/format.h>

namespace dlock {
inline namespace v0 {

template <class T>
std::optional<Holder> Attempt<T>::holder() const {
  if (!why_) throw Error(Fault::misuse, "the attempt was not refused: nobody else is in the way");
  const auto core = core_.lock();
  if (!core)
    throw Error(Fault::misuse, fmt::format("the engine that was asked for {} is gone: nobody can be asked who holds it",
                                           in_quotes(name_)));
  const Name name(name_);
  auto row = core->inspect(name);
  if (why_ == Refusal::locked && row && row->state == State::free && core->locked_elsewhere(name))
    row->state = State::locked;
  return row;
}

template class Attempt<Lock>;
template class Attempt<Token>;
template class Attempt<Grant>;

}  // namespace v0
}  // namespace dlock
