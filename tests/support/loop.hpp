// How a test runs handlers on its own thread: as the loop of a program does.
#pragma once

#include "support/eventually.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace dlock::test {

// An executor, and the loop that it posts to. Threads: post from any; the rest one.
class Loop {
 public:
  std::function<void(std::function<void()>)> executor() {
    return [this](std::function<void()> work) {
      const std::lock_guard guard(mutex_);
      posted_.push_back(std::move(work));
    };
  }

  // Runs what is there; how many that were.
  std::size_t run() {
    std::size_t count = 0;
    for (;; ++count) {
      std::function<void()> work;
      {
        const std::lock_guard guard(mutex_);
        if (posted_.empty()) return count;
        work = std::move(posted_.front());
        posted_.pop_front();
      }
      work();
    }
  }

  // Runs what comes until the state is there.
  template <class State>
  bool run_until(State state) {
    return eventually(
        [&] {
          run();
          return state();
        },
        far_longer(), closely);
  }

  std::size_t waiting() {
    const std::lock_guard guard(mutex_);
    return posted_.size();
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace dlock::test
