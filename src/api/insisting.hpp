// What has to be done although there is no memory for it now: it is tried again until there is.
#pragma once

#include "types/clock.hpp"

#include <chrono>
#include <exception>
#include <thread>

namespace dlock::api {

// After so long it is looked whether there is memory again.
constexpr std::chrono::milliseconds until_memory{100};

// Does `work`, which is to throw only where there is no memory, and can be begun again then. `until()`: when nobody
// waits for it any more. False: that time has come.
template <class Work, class Until>
bool insist(Work work, Until until) noexcept {
  for (;;) try {
      work();
      return true;
    } catch (const std::exception&) {
      if (BootClock::now() >= until()) return false;
      std::this_thread::sleep_for(until_memory);  // pause_until takes memory itself
    }
}

}  // namespace dlock::api
