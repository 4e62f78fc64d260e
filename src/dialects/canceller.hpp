// How a statement that runs on one thread is ended from another.
#pragma once

#include "types/clock.hpp"

namespace dlock::dialects {

// Of one connection, which must outlive it.
// Threads: any one at a time, also while another one waits for the statement.
class Canceller {
 public:
  Canceller() = default;
  Canceller(const Canceller&) = delete;
  Canceller& operator=(const Canceller&) = delete;
  virtual ~Canceller() = default;

  // Ends the statement under way; where there is none, it does nothing, at most to the statement that is sent next.
  // That fails on its own thread then. Throws Failure if the database could not be told.
  virtual void cancel(Deadline deadline) = 0;
};

}  // namespace dlock::dialects
