// Keeps many requests under way from one thread, by the calls that answer later.
#pragma once

#include "contender.hpp"
#include "throughput_round.hpp"

#include <dlock/engine.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace bench {

// Takes the lock of each name and gives it back, again and again, all at the same time, on the thread that runs a
// round. Threads: one. Owns: an engine. Fails: throws.
class InFlight {
 public:
  InFlight(const Field& field, const std::vector<std::string>& names);

  // Answers when nothing is under way any more. Times what begins in the round, and for each name one pair at least.
  void run(const ThroughputRound& round, Times& times);

 private:
  struct One {
    std::string name;
    Clock::time_point begin{}, middle{};
    bool counted = false;
  };
  void begin(One& one);
  void granted(One& one, dlock::Result<dlock::Lock> result);
  void released(One& one, dlock::Released told);
  void fail(std::exception_ptr failure);
  void work();

  std::vector<One> all_;
  const ThroughputRound* round_ = nullptr;
  Times* times_ = nullptr;
  std::size_t under_way_ = 0;
  std::exception_ptr failure_{};
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> answers_;  // guarded by mutex_
  dlock::Engine locks_;                        // the last one: it answers until it has ended
};

}  // namespace bench
