// How many locks are taken in a short time: by several threads.
#pragma once

#include <dlock/lock.hpp>

#include <cstddef>
#include <future>
#include <iterator>
#include <vector>

namespace bench {

// `take` of 0 to count - 1, a thread each for the numbers that follow each other by `threads`. Throws what it throws.
template <class Take>
std::vector<dlock::Lock> take_in_parallel(std::size_t count, std::size_t threads, Take take) {
  std::vector<std::future<std::vector<dlock::Lock>>> parts;
  for (std::size_t first = 0; first < threads && first < count; ++first)
    parts.push_back(std::async(std::launch::async, [=] {
      std::vector<dlock::Lock> part;
      for (auto i = first; i < count; i += threads) part.push_back(take(i));
      return part;
    }));
  std::vector<dlock::Lock> all;
  for (auto& part : parts) {
    auto locks = part.get();
    all.insert(all.end(), std::make_move_iterator(locks.begin()), std::make_move_iterator(locks.end()));
  }
  return all;
}

}  // namespace bench
