// What SIGINT and SIGTERM mean to a migration: finish or roll back the step under way, then leave; at the
// second one, cut it off.
#pragma once

#include <stop_token>

namespace dlock::tools::migrate {

// Blocks both signals in this and every later thread, and waits for them on a thread of its own.
// Make one, before any other thread.
class Signals {
 public:
  enum class Meaning {
    // The first one stops the one token, the second the other; with a third one, or if the database does not answer to
    // that in good time, the process ends, which closes the connection under the statement.
    finish_the_step,
    leave,  // at once: there is nothing to finish
  };
  explicit Signals(Meaning meaning);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  std::stop_token stop() const noexcept { return stop_.get_token(); }
  std::stop_token cancel() const noexcept { return cancel_.get_token(); }
  // The first signal, or 0.
  static int received() noexcept;

 private:
  std::stop_source stop_, cancel_;
};

}  // namespace dlock::tools::migrate
