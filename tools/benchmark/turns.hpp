// How many turns a measurement has, and how its time is divided into them.
#pragma once

#include <algorithm>
#include <cstddef>

namespace bench {

// How often each of so many contenders has its turn: often enough for what changes meanwhile to meet all of them, but a
// turn is not to be all warm-up and connecting.
inline int rounds_for(double seconds, std::size_t contenders, int most) {
  constexpr double shortest = 0.05;
  return std::clamp(static_cast<int>(std::min(seconds / static_cast<double>(contenders) / shortest, 1e6)), 3, most);
}

}  // namespace bench
