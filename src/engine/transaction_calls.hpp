// What every call in a caller's transaction has in common: which error its failures are; and that a server of a cluster
// which stays behind is conflict, and is not believed.
#pragma once

#include "engine/context.hpp"
#include "engine/faults.hpp"
#include "store/caller_transaction.hpp"
#include "types/failure.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

namespace dlock::engine {

// The failure of a statement inside a caller's transaction, where nothing may be tried again.
inline Error told_in_transaction(const Failure& failure) {
  switch (failure.cause()) {
    case Cause::locked:
    case Cause::deadlock:
    case Cause::serialization:
      return Error(Fault::conflict, fmt::format("{}; roll the transaction back and run it again", failure.what()),
                   failure.code());
    default: return to_error(failure, false);
  }
}

template <class Work>
auto in_transaction(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Failure& failure) { throw told_in_transaction(failure); }
}

// The transaction may be on another server of a cluster than the engine's connections, which is a little behind. False:
// there is no cluster. Throws conflict if that server stays behind: nothing that it does not find is believed then.
inline bool catch_up(Context& context, store::CallerTransaction& caller) {
  const auto position = context.retry(context.soon(), [&](Deadline until) { return context.table->position(until); });
  if (position.empty()) return false;
  if (!in_transaction([&] { return caller.catch_up(position, context.options.timeouts.request); }))
    throw Error(Fault::conflict,
                "the transaction's server of the cluster is too far behind the others; roll the transaction "
                "back and run it again");
  return true;
}

}  // namespace dlock::engine
