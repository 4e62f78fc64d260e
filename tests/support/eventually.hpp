// How a test waits: for a state, never for a time.
#pragma once

#include "support/slowness.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

namespace dlock::test {

// Far longer than anything should take that comes at all, and short enough for a test to say what did not come.
inline std::chrono::milliseconds far_longer() {
  return std::min(std::chrono::seconds{30} * slowness(), std::chrono::seconds{120});
}

// For a state that passes, and where the asking drives something.
constexpr std::chrono::milliseconds closely{2};

// Asks until the state is there: less often the longer it has taken, since most ask a database, and many tests at a
// time, but at least every `longest`. False: it did not come in far longer than it should take.
template <class State>
bool eventually(State state, std::chrono::milliseconds limit = far_longer(),
                std::chrono::milliseconds longest = std::chrono::milliseconds{30}) {
  using std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  while (!state()) {
    const auto taken = steady_clock::now() - begin;
    if (taken > limit) return false;
    std::this_thread::sleep_for(std::clamp<steady_clock::duration>(taken / 16, closely, longest));
  }
  return true;
}

// Runs `work(0)` … `work(count - 1)` at the same moment, each on a thread of its own; passes the first exception on.
template <class Work>
void in_parallel(int count, Work work) {
  std::latch start(count);
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        try {
          work(i);
        } catch (...) {
          const std::lock_guard guard(mutex);
          if (!failure) failure = std::current_exception();
        }
      });
  }
  if (failure) std::rethrow_exception(failure);
}

class Stopwatch {
 public:
  std::chrono::microseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start_);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace dlock::test
