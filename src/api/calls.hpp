// The calls under way through one engine: what they use lives as long as they do, and they end when the engine does.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <optional>
#include <stop_token>

namespace dlock::api {

class Call;

// Threads: any.
class Calls {
 public:
  // Asks those that wait to stop, and returns when all have left that are not this thread's own, or at the deadline.
  void end(Instant deadline) noexcept;
  bool ended() const noexcept { return end_.stop_requested(); }

 private:
  friend class Call;

  void leave() noexcept;

  std::stop_source end_{};
  std::atomic<bool> ending_{false};  // in one order with count_: who leaves sees it, or the end sees that it has left
  std::atomic<int> count_{0};
  AnnotatedMutex
      mutex_{};  // held by nobody for long: it guards no state, but the moment between a look at it and the wait
  std::condition_variable left_{};
};

// One of them, on the stack of its thread.
class Call {
 public:
  explicit Call(std::shared_ptr<Calls> calls) noexcept;
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Stopped by the caller, or by the end of the engine. To be asked for once.
  std::stop_token stopped_by(std::stop_token caller);
  // Throws misuse if the engine has ended: what a wait has not brought until then it will not bring any more.
  void check() const;

 private:
  friend class Calls;

  struct Stop {
    std::stop_source* source;
    void operator()() const noexcept { source->request_stop(); }
  };
  struct Either {
    std::stop_source source;
    std::optional<std::stop_callback<Stop>> caller, end;
  };

  const std::shared_ptr<Calls> calls_;
  const Call* const outer_;  // the call that this thread was in before
  std::optional<Either> either_{};
};

}  // namespace dlock::api
