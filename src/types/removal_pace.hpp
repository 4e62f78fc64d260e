// How rows are removed so that others at the database hardly feel it: the bounds of that. The numbers:
// dialects/<database>/dialect.cpp; what is made of them: engine/breathing.hpp.
#pragma once

#include <algorithm>
#include <cstddef>

namespace dlock {

struct RemovalPace {
  std::size_t rows;       // at most so many in one transaction
  double rest = 0.5;      // then none, for so many times as long as those took, and 100 ms at most
  std::size_t least = 0;  // to begin with, and where they take long; 0: always `rows`

  RemovalPace at_most(std::size_t limit) const noexcept {
    return {std::min(rows, limit), rest, std::min(least, limit)};
  }
};

}  // namespace dlock
