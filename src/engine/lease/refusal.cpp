// Reads the row of a lease that was refused something.
#include "engine/lease/refusal.hpp"

#include <fmt/format.h>

namespace dlock::engine {
namespace {

// A release by force leaves the row free with its token moved on, and says so in it.
std::string look_into(store::LockTable& table, const Lease& held, const Deadline& deadline, Loss& loss) {
  const auto row = table.inspect(held.name(), deadline);
  if (!row) return "the row is gone";
  if (!row->owner.empty() && row->token == held.row_token())
    return fmt::format("it was adopted by {} ({})", row->label, row->node);
  if (!row->owner.empty())
    return fmt::format("it is held by {} ({}) under token {}", row->label, row->node, number(row->token));
  const bool forced = row->last_run && row->last_run->outcome == Outcome::forced;
  if (number(row->token) != number(held.row_token()) + 1 || !forced)
    return fmt::format("the lock is free under token {}", number(row->token));
  loss = Loss::forced;
  if (row->last_run->reason.empty()) return "it was released by force";
  return fmt::format("it was released by force: {}", row->last_run->reason);
}

}  // namespace

std::string why_refused(store::LockTable& table, const Lease& held, const Deadline& deadline, Loss& loss) noexcept {
  try {
    if (deadline.passed()) return "it is no longer ours";
    try {
      return look_into(table, held, deadline, loss);
    } catch (const Failure& failure) { return fmt::format("it is no longer ours ({})", failure.what()); }
  } catch (const std::exception&) {  // out of memory
    return {};
  }
}

}  // namespace dlock::engine
