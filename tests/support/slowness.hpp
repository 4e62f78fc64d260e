// How much longer things may take in this run than on an idle machine, for bounds and leases of tests.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace dlock::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

namespace slow {

// A sanitized program takes this much longer than one that users run.
inline constexpr int sanitizer = sanitized ? 3 : 1;
// However crowded the machine is: tests have to end before ctest ends them.
inline constexpr int worst_crowd = 6;

// What the runner says: it knows how many tests it is going to start, when few are running yet. 1 if it says nothing.
inline double told() {
  const char* const text = std::getenv("DLOCK_TEST_SLOWNESS");
  if (text == nullptr || *text == '\0') return 1;
  char* end = nullptr;
  const double factor = std::strtod(text, &end);
  if (*end != '\0' || !std::isfinite(factor) || factor < 1)
    throw std::runtime_error("DLOCK_TEST_SLOWNESS must be a number not below 1, not \"" + std::string(text) + "\"");
  return factor;
}

// How many threads there are for each processor, now or on the average of the last minute.
inline double threads_for_a_processor() {
  double minute = 0, longer = 0;
  int running = 0;
  std::ifstream("/proc/loadavg") >> minute >> longer >> longer >> running;
  const long processors = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(minute, static_cast<double>(running)) / static_cast<double>(processors);
}

// How late a thread wakes: sees what the load does not tell, such as a processor that is lent to another machine.
inline double lateness() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  constexpr Milliseconds nap{5}, negligible{5};
  Milliseconds latest{};
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(nap);
    latest = std::max<Milliseconds>(latest, std::chrono::steady_clock::now() - begin - nap);
  }
  return latest / negligible;
}

inline int measured() {
  const double crowd = std::max({1.0, told(), threads_for_a_processor(), lateness()});
  // Their sum: a crowd of sanitized programs is measured as the larger crowd that it is.
  return sanitizer - 1 + static_cast<int>(std::ceil(std::min(crowd, double{worst_crowd})));
}

}  // namespace slow

// 1 in an ordinary build on an idle machine, at most 8. Measured when it is first asked for, then the same.
// Threads: any. Fails: std::runtime_error if the environment's DLOCK_TEST_SLOWNESS is no number.
inline int slowness() {
  static const int factor = slow::measured();
  return factor;
}

}  // namespace dlock::test
