// How rows are removed so that others at the database hardly feel it.
#pragma once

#include <algorithm>
#include <cstddef>

namespace dlock {

struct RemovalPace {
  std::size_t rows;   // at most so many in one transaction
  double rest = 0.5;  // and then none, for so many times as long as those took

  RemovalPace at_most(std::size_t limit) const noexcept { return {std::min(rows, limit), rest}; }
};

}  // namespace dlock
