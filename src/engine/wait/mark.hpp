// The mark on a row that says that its name is wanted: when it is of use, and for how long it says so.
#pragma once

#include "engine/context.hpp"
#include "store/waiter_table.hpp"

namespace dlock::engine {

// How long a mark says that a name is wanted: a release notifies meanwhile.
constexpr Duration mark_length = std::chrono::seconds{10};

// A mark is for a release that notifies, and for who lets a lock linger.
inline bool uses_marks(const Context& context) noexcept {
  return context.options.listen || context.lingers_somewhere.load();
}

// Once, and not for long: without a mark nobody notifies, and looking at intervals has to do.
inline void mark_wanted(Context& context, const Name& name, const Deadline& deadline) {
  try {
    context.table->waiting().want(name.text(), mark_length, deadline);
  } catch (const Failure&) {  // its row is locked, or the database away: the next look says which
  }
}

}  // namespace dlock::engine
