// How a test measures what it bounds: a few times as a rule, and DLOCK_TEST_TRIES times, with the figures
// printed, where that is in the environment.
#pragma once

#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

// Calls `once`, which answers how long something took, and checks that it never took much longer than a thread needs to
// wake up: what is usual is said, and not promised by a test in a crowd.
template <class Once>
void check_prompt(std::string_view what, Once once) {
  CAPTURE(what);
  const char* const tries = std::getenv("DLOCK_TEST_TRIES");
  const auto count = tries == nullptr ? 5 : std::stoul(tries);
  std::vector<std::chrono::microseconds> times;
  while (times.size() < count) times.push_back(once());
  std::ranges::sort(times);
  CHECK(times.front() >= std::chrono::microseconds{0});
  CHECK(times.back() < std::chrono::seconds{2} * slowness());
  if (tries == nullptr) return;
  std::cout << what << ": p50 " << times[times.size() / 2].count() << " us, max " << times.back().count() << " us\n";
}

}  // namespace dlock::test
