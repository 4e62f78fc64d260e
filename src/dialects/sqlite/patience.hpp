// How long one call may wait for the file, and that it ends in time.
#pragma once

#include "types/clock.hpp"

#include <atomic>

struct sqlite3;

namespace dlock::dialects::sqlite {

// Threads: that of its connection, but any for lose(). Must outlive the connection it watches over, and stay where it
// is.
class BusyPatience {
 public:
  explicit BusyPatience(Deadline deadline) noexcept : deadline_(deadline) {}
  BusyPatience(const BusyPatience&) = delete;
  BusyPatience& operator=(const BusyPatience&) = delete;

  // From here on `db` waits for a busy file, and works on one statement, until the deadline. One attempt is always
  // made.
  void watch(sqlite3* db);
  void until(Deadline deadline) noexcept {
    deadline_ = deadline;
    lost_ = false;
  }
  bool over() const noexcept { return lost_ || deadline_.passed(); }
  Instant deadline() const noexcept { return deadline_.at(); }
  // As if the deadline had passed; the next one counts again.
  void lose() noexcept { lost_ = true; }

  // Sleeps a little, longer from time to time, or not at all. False: the deadline has passed.
  bool wait(int attempts);

 private:
  Deadline deadline_;
  // Of the wait that goes on: how often it slept, and until when it looks closely.
  int pauses_ = 0;
  Instant close_until_{};
  std::atomic<bool> lost_{false};
};

}  // namespace dlock::dialects::sqlite
