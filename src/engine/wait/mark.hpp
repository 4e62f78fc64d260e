// The mark on a row that says that its name is wanted: when it is of use, and for how long it says so.
#pragma once

#include "engine/context.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"

namespace dlock::engine {

// How long a mark says that a name is wanted: a release notifies meanwhile.
constexpr Duration mark_length = std::chrono::seconds{10};

// A mark is for a release that notifies, and for who lets a lock linger.
inline bool uses_marks(const Context& context) noexcept {
  return context.options.listen || context.lingers_somewhere.load();
}

// With less than this left of it the name is marked anew.
constexpr Duration mark_renewed_at = mark_length / 4;

// Who sleeps looks again when the mark, whoever made it, is to be renewed. Where marks are of no use there is none.
inline Duration until_marked_anew(const Context& context, Duration wanted_for = mark_length) noexcept {
  constexpr Duration surely = std::chrono::milliseconds{50};
  if (!uses_marks(context) || planted("mark_outlived")) return Duration::max();
  return std::max(wanted_for - mark_renewed_at, Duration{}) + surely;
}
// Without a mark, a ticket or a row that should be there it is tried again this soon.
constexpr Duration longest_unmarked = std::chrono::milliseconds{500};

// Once, and not for long. False: its row is locked, or the database away, and nobody notifies.
inline bool mark_wanted(Context& context, const Name& name, const Deadline& deadline) {
  try {
    context.table->waiting().want(name.text(), mark_length, deadline);
    return true;
  } catch (const Failure&) { return planted("unmarked_sleeps"); }
}

}  // namespace dlock::engine
