// How the handlers of asynchronous calls are run one after another.
#include "api/handlers.hpp"

#include <exception>
#include <utility>

namespace dlock::api {

void Handlers::prepare() {
  const MutexLock guard(mutex);
  if (!executor_ && !closing) start();
}

void Handlers::post(std::function<void()> handler) noexcept {
  try {
    if (executor_) return executor_(std::move(handler));
    {
      const MutexLock guard(mutex);
      if (!closing || running) {
        posted_.push_back(std::move(handler));
        changed.notify_all();
        return;
      }
    }
    handler();     // its thread has gone: what comes that late is run where it comes from
  } catch (...) {  // the program's executor takes nothing, or there is no memory: the answer is lost
  }
}

void Handlers::run() {
  UniqueMutexLock guard(mutex);
  for (;;) {
    while (posted_.empty() && !closing) wait(guard);
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
  running = false;  // what is posted from now on is run by who posts it
}

}  // namespace dlock::api
