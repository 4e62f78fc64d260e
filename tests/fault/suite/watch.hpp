// What a lock claims while a client holds it, as its history tells it; with what a client's threads need besides.
#pragma once

#include "fault/suite/history.hpp"

#include <dlock/duration.hpp>
#include <dlock/lock.hpp>

#include <cstddef>

namespace dlock::test {

// Into the history of this process: one call, so that a kill leaves no half of a line.
void note(const Record& record);

void pause(Duration length);
bool one_in(std::size_t outcomes);  // of one thing in so many
bool told_to_stop();

// Threads: one at a time. The lock must outlive it.
class Watch {
 public:
  Watch(Lock& lock, Nanoseconds asked, const Share& share);

  // Another grant of the lock begins; what was told of the one before is all there is.
  void begin(Nanoseconds asked, const Share& share);

  const Share& share() const noexcept { return share_; }
  // When it was last found to be held.
  Nanoseconds trusted() const noexcept { return trusted_; }

  // False: it is lost.
  bool look();
  // Notes until when it was found to be held.
  void tell();
  // What is about to be asked for ends its trust, so that nothing that was said before counts.
  void trust_no_longer();
  void work(Duration length);
  void release();

 private:
  void await_word();

  Lock& lock_;
  Share share_;
  Nanoseconds trusted_ = 0, claimed_ = 0, noted_ = 0;
  bool lost_ = false;
};

}  // namespace dlock::test
