// Shares a few connections: the last one used first, among those who wait in the order they came; a connection in doubt
// is thrown away.
#pragma once

#include "dialects/dialect.hpp"
#include "store/round_trip.hpp"
#include "types/annotated_mutex.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"
#include "types/process.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace dlock::store {

// Whether a connection is as good as before such a failure.
bool harmless(Cause cause) noexcept;

// Threads: any. Owns: its connections. After fork() the child leaves them alone: they are the parent's.
class Pool {
 public:
  using Connect = std::function<std::unique_ptr<dialects::Connection>(Deadline)>;

  Pool(Connect connect, unsigned limit) : connect_(std::move(connect)), limit_(limit) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // One connection for one piece of work. Goes back to the pool only if the work said that it is sound.
  class Loan {
   public:
    // How it was found: an idle one may have died since it was last used, without anybody having noticed.
    enum class Before { busy, idle };
    // As what it goes back. Given up: its caller did not wait for an answer, which says nothing about the others.
    enum class State { broken, given_up, sound };

    // Without a connection: the room to open one.
    Loan(Pool& pool, std::unique_ptr<dialects::Connection> connection, Before before = Before::busy)
        : pool_(&pool), connection_(std::move(connection)), before_(before) {}
    Loan(Loan&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          connection_(std::move(other.connection_)),
          before_(other.before_),
          state_(other.state_),
          failure_(std::move(other.failure_)) {}
    Loan& operator=(Loan&&) = delete;
    ~Loan() { end(); }
    // Opens the connection, where that is still to be done. Throws Failure.
    void open(Deadline deadline);
    bool is_open() const noexcept { return connection_ != nullptr; }
    dialects::Connection* operator->() const noexcept { return connection_.get(); }
    void sound() noexcept {
      state_ = State::sound;
      failure_.reset();
    }
    void failed(const Failure& failure, const Deadline& deadline) noexcept;
    // Until when a short request may take on this connection: so that there is time to ask again on another one.
    Deadline promptly(const Deadline& deadline) const;
    void end() noexcept;

    // Opens it if need be, and works on it, with the time that a short request may take. It goes back to the pool after
    // that, unless the failure says that it is broken. What one request takes is noted.
    template <class Work>
    auto use(const Deadline& deadline, Work work) -> decltype(work(std::declval<dialects::Connection&>(), deadline)) {
      open(deadline);
      const auto begun = BootClock::now();
      try {
        auto result = work(*connection_, promptly(deadline));
        pool_->round_trip_.answered(BootClock::now() - begun);
        sound();
        end();
        return result;
      } catch (const Failure& failure) {
        if (failure.cause() == Cause::timed_out && failure.may_have_run() && !deadline.stopped())
          pool_->round_trip_.note(BootClock::now() - begun);
        else if (failure.cause() == Cause::locked) pool_->round_trip_.locked(BootClock::now() - begun);
        failed(failure, deadline);
        end();
        throw;
      }
    }

   private:
    Pool* pool_;  // null: it has ended
    std::unique_ptr<dialects::Connection> connection_;
    const Before before_;
    State state_ = State::broken;
    std::optional<Failure> failure_{};  // what the last request on it failed with, unless that was an answer
  };

  // Opening one takes several times as long as a request.
  enum class Opening {
    at_once,
    if_need_be,  // not before what is lent out has had the time to come back
  };

  // Waits for a free one, or for the room to open one; that counts against the deadline. Throws Failure.
  Loan borrow(Deadline deadline, Opening opening = Opening::at_once);
  // For who has waited in vain behind others for a turn.
  Failure none_lent() const;
  // What borrow() answers, if it need not wait.
  std::optional<Loan> at_once();

  // Called, on the thread that asked, whenever a connection was opened again after one had failed: with it, and until
  // when it may be used there. Set before use.
  using Hook = std::function<void(dialects::Connection&, const Deadline&)>;
  void on_reconnect(Hook hook) { on_reconnect_ = std::move(hook); }

  // How long a request takes, as far as is known.
  Duration round_trip() const noexcept { return planted("distance_unknown") ? Duration{} : round_trip_.estimate(); }
  // See RoundTrip.
  Duration answer_time(Duration lock_wait) const noexcept { return round_trip_.answer_time(lock_wait); }

  // Waits for those whose caller did not wait for the answer, and that were thrown away for it: what was asked on them
  // has been done then, or never will be. Until then at most; an instant that has passed only looks.
  void drain(const Deadline& deadline) noexcept;

  // How it is used at this moment.
  struct Use {
    unsigned limit = 0, open = 0, in_use = 0, opening = 0;  // connections
    std::size_t waiting = 0;                                // for one
  };
  Use use() const;

  // Adds a connection that was opened elsewhere, and what a request took on it.
  void adopt(std::unique_ptr<dialects::Connection> connection, BootClock::duration round_trip);

 private:
  struct Waiter;

  void give_back(std::unique_ptr<dialects::Connection> connection, Loan::State state, std::optional<Failure> failure);
  // What came of the last request.
  void note(Loan::State state, std::optional<Failure> failure) noexcept REQUIRES(mutex_);
  void opened(dialects::Connection& connection, const Deadline& deadline);
  // `why`: what the opening failed with; empty: it was not tried.
  void not_opened(const std::optional<Failure>& why) noexcept;
  // Why nobody's connection came in time. `others_worked`: on one, while this one waited; `answered`: and one of them
  // had an answer.
  Failure none_came(bool others_worked, bool answered) const REQUIRES(mutex_);
  void lend() noexcept REQUIRES(mutex_);
  void keep_until_drained(std::unique_ptr<dialects::Connection>&& connection) noexcept REQUIRES(mutex_);
  std::optional<Loan> free_now(Opening opening) REQUIRES(mutex_);
  // Lets as many of those who wait open a connection as there is room for.
  void admit() REQUIRES(mutex_);

  const Connect connect_;
  Hook on_reconnect_;
  const unsigned limit_;
  const ForkGuard fork_guard_;
  RoundTrip round_trip_;
  mutable AnnotatedMutex mutex_;
  std::vector<std::unique_ptr<dialects::Connection>> idle_ GUARDED_BY(mutex_);
  // Given up while they owed an answer, beside the limit; the server may still be at work on them. The oldest first.
  std::list<std::unique_ptr<dialects::Connection>> draining_ GUARDED_BY(mutex_);
  std::deque<Waiter*> waiters_ GUARDED_BY(mutex_);  // each is on its thread's stack
  unsigned open_ GUARDED_BY(mutex_) = 0;            // idle, lent or being opened
  unsigned lent_ GUARDED_BY(mutex_) = 0;            // but for those that are still to be opened
  std::uint64_t lendings_ GUARDED_BY(mutex_) = 0;   // so far
  std::uint64_t answers_ GUARDED_BY(mutex_) = 0;    // that requests on them had, so far
  // A connection has, or the opening of one, since the last that was opened.
  bool failed_ GUARDED_BY(mutex_) = false;
  // What the last opening failed with, unless one has been opened since.
  std::optional<Failure> not_opened_ GUARDED_BY(mutex_){};
  Instant open_again_ GUARDED_BY(mutex_){};  // a moment after it was tried in vain
  // What the last request failed with, unless one has been answered since.
  std::optional<Failure> unanswered_ GUARDED_BY(mutex_){};
};

}  // namespace dlock::store
