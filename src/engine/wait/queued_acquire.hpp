// How an acquire waits in line: what it does between two rests.
#pragma once

#include "engine/acquiring.hpp"
#include "engine/backoff.hpp"
#include "engine/wait/deadlock_detector.hpp"
#include "engine/wait/known_waiters.hpp"
#include "engine/wait/wait_queues.hpp"
#include "store/waiter_table.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace dlock::engine {

// Threads: one at a time. Leaves nothing behind, however it ends. Must not outlive what it is given.
class QueuedAcquire {
 public:
  QueuedAcquire(const AcquireParts& its_parts, GrantRequest& request, const Patience& patience);
  ~QueuedAcquire();
  QueuedAcquire(const QueuedAcquire&) = delete;
  QueuedAcquire& operator=(const QueuedAcquire&) = delete;

  // On the calling thread, until there is a grant. Empty: out of patience.
  std::shared_ptr<Lease> wait();

  // Without a thread: `news` as in WaitQueues::join, from here on. `before`: what this process has been granted of the
  // name just now, whose release will be heard of.
  void begin(std::function<void()> news, const std::shared_ptr<Lease>& before);
  // What wait() answers, once it is known. Empty: it rests, and is to be called again when there are news, or at
  // rests_until(). No step takes much longer than a request may; where it throws what is passing, it may be called
  // again.
  std::optional<std::shared_ptr<Lease>> go_on();
  Instant rests_until() const noexcept { return rests_until_; }
  bool in_line() const noexcept { return waiter_ != nullptr; }

 private:
  using Step = std::optional<std::shared_ptr<Lease>>;  // empty: it waits on

  void begin();
  void sit(bool quiet);
  Step attend();
  Step woken(WaitQueues::WakeReason reason);
  Instant next_look() const noexcept { return std::min(until_, detector_.next()); }

  template <class Call>
  auto retry(Call ask);
  Mode asked_for() const;
  store::Wait wait_as(store::Wait::Discipline discipline) const;
  // Whether others wait behind its ticket, or may be told of a deadlock with it in it.
  bool depended_on() const { return request_.ticket != 0 || request_.may_hold_something(); }
  void sit() { sit(false); }
  void has_row();
  void registered();
  void draw_ticket();
  void add_row();
  bool rows_are_right();
  store::Availability look();
  std::shared_ptr<Lease> lead(const WaitQueues::WaiterState& status);
  std::shared_ptr<Lease> look_again_soon() noexcept;
  bool mark();
  // `freed`: somebody was heard to let go of it just now.
  std::shared_ptr<Lease> attempt(bool freed = false);
  std::shared_ptr<Lease> accept(std::shared_ptr<Lease> held);
  std::shared_ptr<Lease> settle_for(std::shared_ptr<Lease> entered);
  std::shared_ptr<Lease> give_up();

  const AcquireParts& parts_;
  Context& context_;
  GrantRequest& request_;
  const Patience& patience_;
  const std::shared_ptr<WaitRequest> wait_request_;
  const bool in_turn_;
  PollingPauses polling_, pauses_of_turn_;
  const Instant begun_ = BootClock::now();
  std::function<void()> news_{};
  bool attended_ = false;
  WaitQueues::WaiterPtr waiter_{};
  Instant until_{}, rests_until_{};
  Instant step_end_ = Instant::max();  // without a thread: what is asked in this step is answered by then, or broken
  bool has_row_ = false, marked_ = false;  // has_row_: or may have one
  bool doubtful_ = false;                  // it may be written only now
  enum class RowState { none, wanted, there } row_ = RowState::none;
  std::string row_owner_{};
  DeadlockDetector detector_{};
  KnownWaiter known_{};
};

}  // namespace dlock::engine
