// How what has failed is done again: the loop alone. Whether, and after which pause, its callers say
// (engine/context.hpp, engine/reaper.cpp, migrate/migrator.cpp, store/holders.cpp, store/sql_lock_table.cpp).
#pragma once

#include "types/failure.hpp"

namespace dlock {

// Does `work` until it ends without a Failure. Whether it is done once more is what `again(failure)` answers, after a
// pause where one is due; if it is not, that failure is thrown, or what `again` throws instead.
template <class Work, class Again>
auto retry(Work work, Again again) -> decltype(work()) {
  for (;;) {
    try {
      return work();
    } catch (const Failure& failure) {
      if (!again(failure)) throw;
    }
  }
}

}  // namespace dlock
