// The asynchronous calls of one engine: who is asked for, who waits behind whom, and when time is up.
#pragma once

#include "api/handlers.hpp"
#include "api/lock_handle.hpp"
#include "engine/async_acquire.hpp"
#include "engine/core.hpp"
#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/name.hpp"
#include "types/thread.hpp"

#include <dlock/engine.hpp>
#include <dlock/export.hpp>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dlock {
inline namespace v0 {

// Two threads talk to the database, and take along what can be asked for in one statement; a third one looks at the
// clock, and never talks to it: what is late is answered by that one, and what is granted afterwards is given back. Of
// those who wait for one name, and are nobody's job, the first alone is in line; the others are a few bytes each behind
// it. Threads: any. Owns: its threads, for as long as the engine, and the handlers until they are called.
// No handler is called, and none destroyed, with the mutex held; nor is anything asked of the core then.
class DLOCK_HIDDEN Engine::Async : public std::enable_shared_from_this<Engine::Async> {
 public:
  struct Request {
    const Name& name;
    const LockOptions& options;
    Instant deadline;
    bool waits;  // false: one attempt
    std::stop_token stop{};
  };

  explicit Async(std::shared_ptr<Core> core);

  // Throws misuse, and unavailable where there is no thread to be had; then the handler is not called.
  void acquire(const Request& request, LockHandler handler);
  // Takes what is held, unless it throws.
  void release(std::shared_ptr<Lock::Handle>& held, std::function<void(Released)> handler);
  // Answers everybody, and returns when all threads have ended that are not this one, or at `until`.
  void end(Instant until) noexcept;
  // How many wait for each name behind the first of them.
  void count(std::map<std::string, std::size_t, std::less<>>& waiting) const;

 private:
  using Id = std::uint64_t;
  using Due = std::pair<Instant, Id>;
  using Wake = std::function<void()>;

  // Says that a caller has asked to stop.
  struct Stopped {
    std::weak_ptr<Async> async;
    Id id;
    void operator()() const noexcept;
  };
  using OnStop = std::unique_ptr<std::stop_callback<Stopped>>;

  // That of the Async of an Acquire, which guards it.
  static constexpr MutexKind acquires_mutex{};

  // One that is asked for, or in line.
  struct Acquire {
    Acquire(std::shared_ptr<engine::Acquirer> acquirer, Id its_id, const Name& name,
            std::shared_ptr<const LockOptions> options, Instant deadline, bool waits, Instant called)
        : id(its_id),
          in_vain(waits ? Refused::timed_out : Refused::busy),
          work(std::move(acquirer), name, std::move(options), {deadline, stop.get_token(), waits}, called),
          late(later(work.answered_by(), std::chrono::milliseconds{25})) {}
    const Id id;
    const Refused in_vain;  // what it is told when it was not to be had
    std::stop_source stop{};
    engine::AsyncAcquire work;
    const Instant late;  // when it is answered whatever its thread does
    LockHandler handler GUARDED_BY(acquires_mutex){};
    OnStop on_stop GUARDED_BY(acquires_mutex){};
    enum class State { ready, running, resting, over } state GUARDED_BY(acquires_mutex) = State::ready;
    bool first_in_queue GUARDED_BY(acquires_mutex) = false, news GUARDED_BY(acquires_mutex) = false;
    bool answered GUARDED_BY(acquires_mutex) = false;
    Instant seen GUARDED_BY(acquires_mutex){};                            // when somebody was last seen to have it
    std::shared_ptr<engine::Lease> granted GUARDED_BY(acquires_mutex){};  // what its answer has told of
    Instant due GUARDED_BY(acquires_mutex) = Instant::max();
  };
  using AcquirePtr = std::shared_ptr<Acquire>;

  // One that waits behind the first of its queue.
  struct Parked {
    Id id;
    LockHandler handler;
    std::shared_ptr<const LockOptions> options;
    Instant deadline, called;
    const std::string* name;  // the queue's
    OnStop on_stop{};
    bool seen = false;  // by who is first: that somebody has it
  };

  struct WaitQueue {
    bool occupied = false;  // somebody is first
    bool seen = false;      // that one has seen that somebody has it, or one before
    std::deque<Id> order{};
    std::size_t parked = 0;                        // of those in `order` that are still there
    std::shared_ptr<const LockOptions> options{};  // that the last one has, since most have the same
  };

  struct Release {
    std::shared_ptr<Lock::Handle> held;
    engine::ReleaseRequest request;  // left already
    std::function<void(Released)> handler;
    std::function<Released(Duration)> finish{};  // what is still to be done, alone
    bool locked = false;                         // that may take all of its time
  };

  // What is done after the mutex is free: handlers to be called, and what is to be destroyed.
  struct Afterwards {
    std::vector<std::pair<LockHandler, Result<Lock>>> answers{};
    std::vector<OnStop> gone{};
    std::vector<AcquirePtr> stopped{}, refused{};
    std::vector<std::pair<AcquirePtr, Error>> broken{};
    std::vector<std::pair<Name, Parked>> expired{};
  };

  void start() REQUIRES(mutex_);
  void watch_stop(Id id, const std::stop_token& stop) noexcept;
  void stopped(Id id) noexcept;

  bool parks(const Request& request, WaitQueue& queue) const REQUIRES(mutex_, acquires_mutex);
  void park(Id id, const Request& request, LockHandler handler, WaitQueue& queue, const std::string& name)
      REQUIRES(mutex_, acquires_mutex);
  void ready(const AcquirePtr& acquire) REQUIRES(mutex_, acquires_mutex);
  void rest(const AcquirePtr& acquire) REQUIRES(mutex_, acquires_mutex);
  void look_at(Instant due, Id id) REQUIRES(mutex_, acquires_mutex);
  bool still_due(const Due& due) const REQUIRES(mutex_, acquires_mutex);
  std::optional<Due> next_due() const REQUIRES(mutex_, acquires_mutex);
  void answer(const AcquirePtr& acquire, Result<Lock> result, Afterwards& afterwards) REQUIRES(mutex_, acquires_mutex);
  void next_in_line(Acquire& before) REQUIRES(mutex_, acquires_mutex);
  void seen_held(Acquire& acquire, Instant at) REQUIRES(mutex_, acquires_mutex);
  Parked unpark(Id id) REQUIRES(mutex_, acquires_mutex);
  void on_time(Instant now, Afterwards& afterwards) REQUIRES(mutex_, acquires_mutex);
  void on_stops(Afterwards& afterwards) REQUIRES(mutex_, acquires_mutex);
  void begin(const AcquirePtr& acquire, OnStop on_stop, LockHandler handler) REQUIRES(mutex_, acquires_mutex);
  std::vector<AcquirePtr> next_acquires() REQUIRES(mutex_, acquires_mutex);
  std::vector<Release> next_releases() REQUIRES(mutex_, acquires_mutex);

  void perform(Afterwards afterwards) EXCLUDES(mutex_);
  void look_for_itself(const Name& name, Parked parked);
  bool is_own_thread() const noexcept;
  void work();
  void watch_time();
  void ask(std::vector<AcquirePtr> batch);
  void put_back(std::vector<AcquirePtr> batch);
  void run(void (Async::*part)());
  void deliver(LockHandler handler, Result<Lock> result) noexcept EXCLUDES(mutex_);
  void deliver(std::function<void(Released)> handler, Released released) noexcept EXCLUDES(mutex_);
  void release_rest() noexcept;
  void release_at_last(Release& one) noexcept;
  void step(const AcquirePtr& acquire) EXCLUDES(mutex_);
  void give_back(std::vector<Release> batch);
  Wake wake_of(const AcquirePtr& acquire);
  static Error ended();
  Result<Lock> result_of(Acquire& acquire, engine::Acquired acquired) const;
  void left() noexcept;

  const std::shared_ptr<Core> core_;
  const std::shared_ptr<api::Handlers> handlers_;
  const std::size_t most_;
  mutable AnnotatedMutex mutex_;
  std::condition_variable work_, time_, ended_;
  Id last_id_ GUARDED_BY(mutex_) = 0;
  int running_ GUARDED_BY(mutex_) = 0;               // threads
  bool closed_ GUARDED_BY(mutex_) = false;           // everybody is answered
  bool ending_ GUARDED_BY(mutex_) = false;           // threads are to leave
  unsigned turn_ GUARDED_BY(mutex_) = 0;             // of what waits for a thread
  std::deque<AcquirePtr> fresh_ GUARDED_BY(mutex_);  // not begun
  std::deque<AcquirePtr> ready_ GUARDED_BY(mutex_);  // in line, with something to do
  std::list<Release> releases_ GUARDED_BY(mutex_);
  std::list<Release> unfinished_ GUARDED_BY(mutex_);  // of rows that are locked, one by one
  bool finishing_ GUARDED_BY(mutex_) = false;
  std::unordered_map<Id, AcquirePtr> acquires_ GUARDED_BY(mutex_);
  std::unordered_map<Id, Parked> parked_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, WaitQueue> queues_ GUARDED_BY(mutex_);
  std::vector<Id> stops_ GUARDED_BY(mutex_);
  std::vector<Due> dues_ GUARDED_BY(mutex_);  // a heap, the next one first; of some the time has changed since
  std::array<Thread, 3> threads_;             // last: they end before what they use
};

}  // namespace v0
}  // namespace dlock
