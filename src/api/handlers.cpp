// How the handlers of asynchronous calls are run one after another.
#include "api/handlers.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace dlock::api {

void Handlers::start() {
  const MutexLock guard(mutex_);
  if (executor_ || thread_.started()) return;
  thread_.start([self = shared_from_this()] { self->run(); });
  running_ = true;
}

void Handlers::post(std::function<void()> handler) noexcept {
  try {
    if (executor_) return executor_(std::move(handler));
    {
      const MutexLock guard(mutex_);
      if (!ending_ || running_) {
        posted_.push_back(std::move(handler));
        changed_.notify_all();
        return;
      }
    }
    handler();     // its thread has gone: what comes that late is run where it comes from
  } catch (...) {  // the program's executor takes nothing, or there is no memory: the answer is lost
  }
}

void Handlers::end(Instant until) noexcept {
  {
    UniqueMutexLock guard(mutex_);
    ending_ = true;
    changed_.notify_all();
    if (!thread_.started()) return;
    if (!thread_.is_this()) changed_.wait_until(guard, countable(until), [&]() REQUIRES(mutex_) { return !running_; });
    if (running_) thread_.let_be();
  }
  thread_.finish();
}

void Handlers::run() {
  UniqueMutexLock guard(mutex_);
  for (;;) {
    changed_.wait(guard, [&]() REQUIRES(mutex_) { return ending_ || !posted_.empty(); });
    if (posted_.empty()) break;
    auto handler = std::move(posted_.front());
    posted_.pop_front();
    guard.unlock();
    try {
      handler();
    } catch (...) {  // it is the program's: never the end of a thread of the engine
    }
    handler = nullptr;
    guard.lock();
  }
  running_ = false;
  changed_.notify_all();
}

}  // namespace dlock::api
