// Where the handlers of asynchronous calls run.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/thread.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace dlock::api {

// Handlers are functions that can be copied; what they are handed cannot.
template <class Handler, class Answer>
std::function<void()> bound(Handler handler, Answer answer) {
  auto both = std::make_shared<std::pair<Handler, Answer>>(std::move(handler), std::move(answer));
  return [both] {
    const auto handle = std::move(both->first);
    handle(std::move(both->second));
  };
}

// On the program's executor, or where it has none one after another on a thread of its own.
// Threads: any. Owns: what is to be run, until it is.
class Handlers : public std::enable_shared_from_this<Handlers> {
 public:
  using Executor = std::function<void(std::function<void()>)>;
  explicit Handlers(Executor executor) : executor_(std::move(executor)) {}

  // Throws std::system_error where there is no thread to be had.
  void start();
  void post(std::function<void()> handler) noexcept;
  // What was posted is still run. Returns when it has been, or at `until`, or at once on the thread that runs it.
  void end(Instant until) noexcept;

 private:
  void run();

  const Executor executor_;
  AnnotatedMutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false, running_ GUARDED_BY(mutex_) = false;
  Thread thread_;  // touched with the mutex held, but by who waits for its end
};

}  // namespace dlock::api
