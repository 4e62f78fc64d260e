// How to wait for the one writer of a file: briefly at first, since most are done in a millisecond. One
// that writes all the time leaves gaps of some microseconds, which are not found by looking now and then: after each
// pause it is looked for closely, for as long as a commit takes.
#include "patience.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <random>
#include <thread>

namespace dlock::dialects::sqlite {
namespace {

constexpr int shortest_us = 200, longest_us = 2500;  // one of each process looks (write_queue.hpp)
constexpr std::chrono::microseconds close_look{200};
constexpr int steps_between_looks = 200'000;  // of SQLite's machine: some milliseconds

}  // namespace

void BusyPatience::watch(sqlite3* db) {
  sqlite3_busy_handler(
      db, [](void* self, int attempts) { return static_cast<BusyPatience*>(self)->wait(attempts) ? 1 : 0; }, this);
  sqlite3_progress_handler(
      db, steps_between_looks, [](void* self) { return static_cast<BusyPatience*>(self)->over() ? 1 : 0; }, this);
}

bool BusyPatience::wait(int attempts) {
  const auto now = BootClock::now();
  if (over()) return false;
  if (attempts == 0) {
    pauses_ = 0;
    close_until_ = later(now, close_look);
  }
  if (now < close_until_) {
    std::this_thread::yield();
    return true;
  }
  thread_local std::minstd_rand random{std::random_device{}()};
  const int longest = std::min(longest_us, shortest_us << std::min(pauses_++, 5));
  const std::chrono::microseconds pause{std::uniform_int_distribution<int>{longest / 2, longest}(random)};
  std::this_thread::sleep_for(std::min<BootClock::duration>(pause, deadline_.at() - now));
  close_until_ = later(BootClock::now(), close_look);
  return true;
}

}  // namespace dlock::dialects::sqlite
