// Writes other metadata into the row of a lease.
#include "engine/core.hpp"
#include "engine/retry.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

namespace dlock {
inline namespace v0 {

// Repeated until there is an answer: whatever became of an attempt without one, the next writes the same. One that
// arrives late, after this has ended, can still write over what was written since, but only while the grant lasts.
void Core::update_metadata(const std::shared_ptr<engine::Lease>& held, std::string_view metadata, Keep keep) {
  const bool written =
      retry(soon(), [&](Deadline until) { return table_->update_metadata(held->pinned_key(), metadata, keep, until); });
  if (written) return;
  if (held->lose(Loss::refused))
    events_->emit_loss(held, "its metadata could not be written: the lease is no longer ours");
  throw Error(Fault::lost, fmt::format("the lock {} (token {}) is lost: its metadata could not be written",
                                       in_quotes(held->name()), number(held->token())));
}

}  // namespace v0
}  // namespace dlock
