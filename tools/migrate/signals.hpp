// This file knows what SIGINT and SIGTERM mean to a migration: finish or roll back the step under way, then leave.
#pragma once

#include <stop_token>

namespace dlock::tools::migrate {

// Blocks both signals in this and every later thread, and waits for them on a thread of its own. The first one stops
// the token; the second ends the process at once, which closes the connection under the statement.
// Make one, before any other thread.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  std::stop_token token() const noexcept { return stop_.get_token(); }
  // The first signal, or 0.
  static int received() noexcept;

 private:
  std::stop_source stop_;
};

}  // namespace dlock::tools::migrate
