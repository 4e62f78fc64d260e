// How those who wait hear of a release in another process.
#pragma once

#include "types/clock.hpp"
#include "types/failure.hpp"

#include <span>
#include <string>
#include <vector>

namespace dlock::dialects {

// A name that is waited for, and the actor in its row when it was last looked at: the first 16 characters are the
// engine of the one who holds it. Empty: not known.
struct AwaitedLock {
  std::string name, holder;
};

// What was heard. Never a promise: whoever hears it looks at the row.
struct Notification {
  struct One {
    std::string name;
    std::string head;  // only this owner need wake: the queue's first. Empty: anybody
  };
  bool everything = false;  // any name may have become free
  std::vector<One> names;
  bool empty() const noexcept { return !everything && names.empty(); }
};

// Threads: all by one, interrupt() by any. Owns: one connection at most, which no child process inherits.
class Listener {
 public:
  virtual ~Listener() = default;

  // Waits until something is heard, `until`, or interrupt(): the last two give an empty answer. What was heard since
  // the listener was opened is not lost, whether or not wait() was running. Throws Failure when it cannot listen any
  // more: then it must be thrown away, and another one opened after a pause.
  virtual Notification wait(std::span<const AwaitedLock> awaited, Deadline until) = 0;

  // Whether a release of it would have been heard during the last wait(). Where it would not, only looking helps.
  virtual bool hears(const AwaitedLock&) const { return true; }

  // Ends the wait() that runs, or else the next one, at once.
  virtual void interrupt() noexcept = 0;
};

// What a release sets off on a database where the statement itself cannot.
// Threads: one at a time. Owns: one connection at most, opened at the first use.
class ReleaseSignal {
 public:
  virtual ~ReleaseSignal() = default;
  // Everybody who watches a name that this engine holds, or held, hears it. Throws Failure: nobody may have heard it.
  virtual void send(Deadline deadline) = 0;
};

}  // namespace dlock::dialects
