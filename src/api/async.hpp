// The asynchronous calls of one engine: who is asked for, who waits behind whom, and when time is up.
#pragma once

#include "api/handlers.hpp"
#include "api/insisting.hpp"
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
// No handler is called, and none destroyed, with the mutex held; nor is anything asked of the core then. Whatever needs
// memory takes it before anything is changed, and does without, waits for it or is tried again where there is none.
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

  // Says that a caller has asked to stop, without taking memory then.
  struct Stopped {
    std::weak_ptr<Async> async;
    std::list<Id> id;
    void operator()() noexcept;
  };
  using OnStop = std::unique_ptr<std::stop_callback<Stopped>>;

  // That of the Async of an Acquire, which guards it.
  static constexpr MutexKind acquires_mutex{};

  struct Acquire;
  using AcquirePtr = std::shared_ptr<Acquire>;
  using Acquires = std::list<AcquirePtr>;

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
    Acquires::iterator place GUARDED_BY(acquires_mutex){};
  };

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
    bool occupied = false;  // somebody is first; or else, while some are parked, there was no memory for the next one
    bool seen = false;      // that one has seen that somebody has it, or one before
    Instant seen_at{};      // when the one before did
    std::shared_ptr<engine::Lease> shut{};  // what the one before was granted, if it keeps the next one out
    std::deque<Id> order{};
    std::size_t parked = 0;                        // of those in `order` that are still there
    std::shared_ptr<const LockOptions> options{};  // that the last one has, since most have the same
  };
  using WaitQueues = std::unordered_map<std::string, WaitQueue>;

  // `handler` is guarded by the mutex, the rest by it until a thread gives it back.
  struct Release {
    std::shared_ptr<Lock::Handle> held;
    engine::ReleaseRequest request;  // left already
    std::function<void(Released)> handler;
    Instant deadline;                            // by then it is told, and left to the renewer if need be
    Instant again{};                             // not to be asked for sooner
    bool asked = false;                          // once at least
    std::function<Released(Duration)> finish{};  // what is still to be done, alone
  };
  using Releases = std::list<Release>;
  using ReleasePtr = Releases::iterator;

  // What is done after the mutex is free: handlers to be called, and what is to be destroyed.
  struct Afterwards {
    std::vector<std::pair<LockHandler, Result<Lock>>> answers{};
    std::vector<OnStop> gone{};
    std::vector<AcquirePtr> stopped{}, refused{};
    std::vector<std::pair<AcquirePtr, Error>> broken{};
    std::vector<std::pair<Name, Parked>> expired{};
    // For one more of each.
    void make_room();
    bool empty() const noexcept { return answers.empty() && stopped.empty() && expired.empty(); }
  };

  void start() REQUIRES(mutex_);
  void stopped(std::list<Id>& id) noexcept;

  bool parks(const Request& request, WaitQueue& queue) const REQUIRES(mutex_, acquires_mutex);
  // These take the last two, unless they throw.
  void park(Id id, const Request& request, const WaitQueues::iterator& queue, OnStop& on_stop, LockHandler& handler)
      REQUIRES(mutex_, acquires_mutex);
  void begin(const AcquirePtr& acquire, OnStop& on_stop, LockHandler& handler) REQUIRES(mutex_, acquires_mutex);

  void ready(const AcquirePtr& acquire) noexcept REQUIRES(mutex_, acquires_mutex);
  void rest(const AcquirePtr& acquire) REQUIRES(mutex_, acquires_mutex);
  void look_at(Instant due, Id id) REQUIRES(mutex_, acquires_mutex);
  bool still_due(const Due& due) const REQUIRES(mutex_, acquires_mutex);
  std::optional<Due> next_due() const REQUIRES(mutex_, acquires_mutex);
  // There is room for it.
  void answer(const AcquirePtr& acquire, Result<Lock> result, Afterwards& afterwards) noexcept
      REQUIRES(mutex_, acquires_mutex);
  void next_in_line(Acquire& before) noexcept REQUIRES(mutex_, acquires_mutex);
  void promote(const WaitQueues::iterator& queue) noexcept REQUIRES(mutex_, acquires_mutex);
  void promote_late(Instant now) noexcept REQUIRES(mutex_, acquires_mutex);
  void seen_held(Acquire& acquire, Instant at) REQUIRES(mutex_, acquires_mutex);
  Parked unpark(Id id) noexcept REQUIRES(mutex_, acquires_mutex);
  void on_time(Instant now, Afterwards& afterwards) REQUIRES(mutex_, acquires_mutex);
  void on_stops(Afterwards& afterwards) REQUIRES(mutex_, acquires_mutex);
  void end_all(Afterwards& afterwards) REQUIRES(mutex_, acquires_mutex);
  std::vector<AcquirePtr> next_acquires() REQUIRES(mutex_, acquires_mutex);
  std::vector<ReleasePtr> next_releases(Releases& from) REQUIRES(mutex_);
  bool releases_wait(Instant now) const REQUIRES(mutex_);
  Instant ends_by() const noexcept EXCLUDES(mutex_);

  // When there is memory for it; false: there was none until the engine's end.
  template <class Work>
  bool insist(Work work) const noexcept EXCLUDES(mutex_) {
    return api::insist(std::move(work), [this] { return ends_by(); });
  }
  void perform(Afterwards afterwards) noexcept EXCLUDES(mutex_);
  void look_for_itself(const Name& name, Parked& parked) noexcept EXCLUDES(mutex_);
  bool is_own_thread() const noexcept;
  void work();
  void watch_time();
  void ask(std::vector<AcquirePtr> batch) noexcept EXCLUDES(mutex_);
  void put_back(const std::vector<AcquirePtr>& batch) noexcept EXCLUDES(mutex_);
  void run(void (Async::*part)()) noexcept;
  template <class Handler, class Answer>
  void deliver(Handler handler, Answer answer) noexcept EXCLUDES(mutex_) {
    if (!handler) return;
    std::shared_ptr<api::Telling<Handler, Answer>> telling;
    insist([&] {
      if (!telling) telling = std::make_shared<api::Telling<Handler, Answer>>(std::move(handler), std::move(answer));
      handlers_->post([telling] { (*telling)(); });
    });
  }
  void release_rest() noexcept;
  void release_at_last(Release& one) noexcept;
  void step(const AcquirePtr& acquire) noexcept EXCLUDES(mutex_);
  void give_back(std::vector<ReleasePtr> batch) noexcept EXCLUDES(mutex_);
  Wake wake_of(const AcquirePtr& acquire);
  Result<Lock> result_of(Acquire& acquire, const engine::Acquired& acquired) const;
  void left() noexcept;

  const std::shared_ptr<Core> core_;
  const std::shared_ptr<api::Handlers> handlers_;
  const std::size_t most_;
  const Error ended_{Fault::misuse, "the engine was destroyed while this call waited on it"};
  mutable AnnotatedMutex mutex_;
  std::condition_variable work_, time_, all_left_;
  Id last_id_ GUARDED_BY(mutex_) = 0;
  int running_ GUARDED_BY(mutex_) = 0;                   // threads
  bool closed_ GUARDED_BY(mutex_) = false;               // everybody is answered
  bool ending_ GUARDED_BY(mutex_) = false;               // threads are to leave
  Instant ends_by_ GUARDED_BY(mutex_) = Instant::max();  // once it ends
  unsigned turn_ GUARDED_BY(mutex_) = 0;                 // of what waits for a thread
  Acquires fresh_ GUARDED_BY(mutex_);                    // not begun
  Acquires ready_ GUARDED_BY(mutex_);                    // in line, with something to do
  Acquires aside_ GUARDED_BY(mutex_);                    // the others: some thread's, or at rest
  Releases releases_ GUARDED_BY(mutex_);                 // to be asked for
  Releases unfinished_ GUARDED_BY(mutex_);               // that were in vain, and are asked for again
  Releases giving_back_ GUARDED_BY(mutex_);              // some thread's
  int telling_ GUARDED_BY(mutex_) = 0;                   // threads that tell of a release just now
  bool finishing_ GUARDED_BY(mutex_) = false;            // a thread has some that were in vain
  bool silent_ GUARDED_BY(mutex_) = false;               // the last statement of releases got no answer
  std::unordered_map<Id, AcquirePtr> acquires_ GUARDED_BY(mutex_);
  std::unordered_map<Id, Parked> parked_ GUARDED_BY(mutex_);
  WaitQueues queues_ GUARDED_BY(mutex_);
  Instant promotes_at_ GUARDED_BY(mutex_) = Instant::max();  // when queues without a first one are looked at
  std::list<Id> stops_ GUARDED_BY(mutex_);
  std::list<LockHandler> stopped_before_ GUARDED_BY(mutex_);  // of calls that were stopped before they began
  std::vector<Due> dues_ GUARDED_BY(mutex_);  // a heap, the next one first; of some the time has changed since
  std::array<Thread, 3> threads_;             // last: they end before what they use
};

}  // namespace v0
}  // namespace dlock
