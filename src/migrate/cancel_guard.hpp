// For how long the statements of a migrator may be cut off, and that one which is missed is asked again.
#pragma once

#include "dialects/canceller.hpp"
#include "types/annotated_mutex.hpp"
#include "types/thread.hpp"

#include <condition_variable>
#include <functional>
#include <optional>
#include <stop_token>

namespace dlock::migrate {

// While it lives, what runs on the canceller's connection is cut off as soon as `asked` is; nothing is after that.
// Threads: made and ended by the one that runs the statements.
class CancelGuard {
 public:
  // Without a canceller it does nothing.
  CancelGuard(dialects::Canceller* canceller, const std::stop_token& asked);
  CancelGuard(const CancelGuard&) = delete;
  CancelGuard& operator=(const CancelGuard&) = delete;
  ~CancelGuard();

 private:
  void cut();

  dialects::Canceller* const canceller_;
  AnnotatedMutex mutex_;
  std::condition_variable changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  Thread thread_;
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

}  // namespace dlock::migrate
