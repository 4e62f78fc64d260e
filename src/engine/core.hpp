// The engine as a whole: asking, waiting, holding, letting go.
#pragma once

#include "engine/busy_cache.hpp"
#include "engine/event_queue.hpp"
#include "engine/lease/adoptions.hpp"
#include "engine/lease/lease.hpp"
#include "engine/lease/lease_renewer.hpp"
#include "engine/lease/lingering_leases.hpp"
#include "engine/lease/reentrance_table.hpp"
#include "engine/lease/trust_timer.hpp"
#include "engine/reaper.hpp"
#include "engine/session_id.hpp"
#include "engine/wait/notifier.hpp"
#include "engine/wait/wait_queues.hpp"
#include "store/lock_table.hpp"

#include <dlock/engine.hpp>
#include <dlock/error.hpp>
#include <dlock/options.hpp>
#include <dlock/transaction.hpp>
#include <dlock/waiter.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dlock {
inline namespace v0 {

// What Engines and Locks share. Threads: any. Owns: the table's connections, the renewer, the timer, the event queue.
// Fails: Error, as include/dlock/engine.hpp says.
class Core : public std::enable_shared_from_this<Core> {
 public:
  class AsyncAcquire;  // one acquire without a thread of its own

  // How long a call may look for a grant.
  struct Patience {
    Instant deadline = Instant::max();
    std::stop_token stop{};
    bool waits = false;  // false: one answer is enough

    // Whether there is any left to wait with.
    bool lasts() const { return waits && !stop.stop_requested() && BootClock::now() < deadline; }
  };

  // `options` are complete and valid. `half`: the engine's half of the actor of all its grants.
  Core(std::shared_ptr<store::LockTable> table, EngineOptions options, std::string half = engine::random_id());
  // One time for the end of all, where somebody has begun to wait for it before.
  void end_by(Instant until) noexcept { end_by_ = until; }
  ~Core();  // waits for statements that are under way, all at the same time: at most timeouts.request
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const EngineOptions& options() const noexcept { return options_; }

  // Throws misuse where an acquire with them would.
  void check(const LockOptions& options) const { static_cast<void>(terms_of(options)); }
  // What became of a wish. Empty: busy, or out of patience.
  struct Acquired : std::shared_ptr<engine::Lease> {
    Acquired(std::shared_ptr<engine::Lease> lease = nullptr, bool locked = false, bool was_entered = false) noexcept
        : std::shared_ptr<engine::Lease>(std::move(lease)), row_locked(locked), entered(was_entered) {}
    bool row_locked;  // empty since another transaction has the row locked; nobody was seen who holds it
    bool entered;     // what its thread or job held already
  };
  Acquired acquire(const Name& name, const LockOptions& options, const Patience& patience);
  // All of the names, which are in order and none of them twice; or none.
  struct AcquiredAll {
    std::vector<std::shared_ptr<engine::Lease>> leases{};  // in the order of the names
    std::size_t in_the_way = 0;                            // if there are none: the name that was not to be had
    bool row_locked = false;                               // as in Acquired, of that one
  };
  // Who waits holds none of them meanwhile.
  AcquiredAll acquire_all(std::span<const Name> names, const LockOptions& options, const Patience& patience);
  // For who has waited in vain behind others in line: whether nobody was seen who holds what they wait for.
  bool nobody_seen(const std::string& name) const { return queues_->blocked(name); }
  // A wait is over that did not get to the database.
  void tell_timed_out(const Name& name, Instant begun, const LockOptions& options) {
    tell_end(name, begun, true, said_by(options));
  }
  // How often the calling thread, or its job, has entered a lease that it holds and can trust.
  int hold_count(const Name& name);
  // Extends it where less than `left` of it can be trusted, by the lease it has or by one that is long enough.
  void ensure(const std::shared_ptr<engine::Lease>& held, Duration left);
  // Empty: it is not a grant of the name.
  std::shared_ptr<engine::Lease> adopt(const Name& name, const Grant& grant, const LockOptions& options);
  bool renew(const Name& name, const Grant& grant, std::optional<Duration> lease);
  Released release(const std::shared_ptr<engine::Lease>& held, Duration timeout);
  // What became of each, in their order; or what finds that out, one at a time, within the time that it is given.
  struct Given {
    std::optional<Released> end{};
    std::function<Released(Duration)> finish{};
    bool locked = false;  // its row could not be had: to finish may take all of its time
  };
  std::vector<Given> release_together(std::span<const std::shared_ptr<engine::Lease>> all, Duration timeout);
  // As release() does, in as few statements as possible; all of it takes at most `timeout`. In their order.
  std::vector<Released> release_each(std::span<const std::shared_ptr<engine::Lease>> all, Duration timeout);
  // All that is held now, whoever has it; takes at most `timeout`.
  Engine::ReleasedAll release_all(Duration timeout);
  // From an exclusive lease to a shared one, without a gap, and back: empty if it is not alone. The old one has ended then.
  std::shared_ptr<engine::Lease> downgrade(const std::shared_ptr<engine::Lease>& held);
  std::shared_ptr<engine::Lease> upgrade(const std::shared_ptr<engine::Lease>& held);
  void detach(const std::shared_ptr<engine::Lease>& held);
  // `at_least`: for so long from now nobody else is to have it, even if it is released.
  void extend(const std::shared_ptr<engine::Lease>& held, Duration lease, Duration at_least = {}) {
    extend(held, {lease, at_least}, soon());
  }
  void update_metadata(const std::shared_ptr<engine::Lease>& held, std::string_view metadata, Keep keep);
  // Who waits for the name, in this process and as of the last renewal in others.
  std::optional<Wanted> wanted(const engine::Lease& held) const;
  std::stop_token asked(const std::shared_ptr<engine::Lease>& held);

  // In a caller's transaction. With `lease` a lease begins with its commit; without, the lock lasts as long as it does,
  // and has no owner. Empty: busy, or out of patience.
  struct Taken : std::optional<Grant> {
    Taken(std::optional<Grant> grant = {}, bool locked = false) noexcept
        : std::optional<Grant>(std::move(grant)), row_locked(locked) {}
    bool row_locked;  // as in Acquired
  };
  Taken try_lock_in(const TransactionRef& transaction, const Name& name, const Deadline& deadline,
                    const LockOptions* lease);
  // Each of them, in their order. `gone`: the entries that ask have left, though others may hold on; they are refused.
  void fence(std::span<const std::shared_ptr<engine::Lease>> all, const TransactionRef& transaction,
             const FenceOptions& options, bool gone = false);
  // Keeps the grants itself: the work may let go of the Lock that asks.
  void with_fence(std::vector<std::shared_ptr<engine::Lease>> all, const TransactionRef& transaction,
                  const std::function<void()>& work, const FenceOptions& options);
  std::string fence_sql(const engine::Lease& held) const { return table_->fence_sql(held.pinned_key()); }

  bool wait_free(const Name& name, const Patience& patience);
  std::vector<Waiter> waiters(const std::string& glob);
  std::vector<Sharer> sharers(const std::string& glob);
  std::optional<Holder> inspect(const Name& name);
  // The same, where it comes soon; empty as well if it does not.
  std::optional<Holder> glance(const Name& name);
  std::vector<Holder> list(const std::string& glob);
  std::vector<HistoryEntry> history(const Name& name, std::size_t limit);
  bool force_release(const Name& name, Token seen, std::string_view reason = {});
  Engine::Reaped reap(std::size_t batch);
  Engine::Reaped reap_all(const Reaping& reaping, const std::stop_token& stop);
  Removal remove(const Name& name, Holder* row, const std::stop_token& stop);
  Stats stats() const;
  std::unique_ptr<engine::EventQueue::Registration> observe(std::function<void(const Event&)> observer) {
    return events_->observe(std::move(observer));
  }

 private:
  // How long a mark says that a name is wanted: a release notifies meanwhile.
  static constexpr Duration mark_length = std::chrono::seconds{10};

  struct Request;         // one acquire: its owner, and what is known of it
  struct Releasing;       // one release
  class QueuedAcquire;    // one acquire that waits in line
  class ReleaseOfAll;     // of all that is held, at one time
  class AcquireOfAll;     // of several names, or none of them
  class ReleaseObserver;  // one that waits for news of a name, and takes no part in its line

  void ensure_running();
  Instant soon() const noexcept;
  Instant answer_by(Instant deadline, Instant called = {}) const noexcept;
  Instant shortly(Instant deadline) const noexcept;
  // `least`, or as long as so many round trips take.
  Duration within(Duration least, int round_trips) const noexcept {
    return std::max<Duration>(least, round_trips * table_->round_trip());
  }
  engine::Lease::Terms terms_of(const LockOptions& options) const;
  engine::Lease::Terms with_margin(engine::Lease::Terms terms) const;
  void check_pace(const engine::Lease::Terms& terms) const;
  Reentrance reentrance_of(const LockOptions& options) const;
  std::shared_ptr<engine::Lease> reenter(const Name& name, const LockOptions& options, Instant deadline);
  std::shared_ptr<engine::Lease> enter_by_job(Request& request, Instant deadline);
  void check_convertible(const engine::Lease& held, Mode from);
  std::shared_ptr<engine::Lease> convert(const std::shared_ptr<engine::Lease>& held, Mode to);
  void open_to_job(const std::shared_ptr<engine::Lease>& held);
  void name_nobody(const engine::Lease& held) noexcept;
  bool refresh(const std::shared_ptr<engine::Lease>& held, const LockOptions& options, Instant deadline);
  struct Extension {
    Duration lease, closed_for{};
    bool only_longer = false;  // a lease that is longer already stays so
  };
  void extend(const std::shared_ptr<engine::Lease>& held, const Extension& wish, Instant deadline);
  void watch(const std::shared_ptr<engine::Lease>& held);
  Released after_release(const std::shared_ptr<engine::Lease>& held, const store::Left& left, bool was_lost,
                         bool may_have_been_freed);
  Released release_later(const std::shared_ptr<engine::Lease>& held, bool was_lost, const Error& why);
  void tell_if_lost(const std::shared_ptr<engine::Lease>& held) noexcept;
  void forget(const std::shared_ptr<engine::Lease>& held) noexcept;
  static void put_rows_right(const engine::JobRef& job, const Deadline& until);
  std::shared_ptr<engine::Lease> wait_for_grant(Request& request, const Patience& patience);
  std::shared_ptr<engine::Lease> told(Request& request, const Patience& patience, std::shared_ptr<engine::Lease> held,
                                      const std::exception_ptr& broken);
  std::shared_ptr<engine::Lease> concluded(Request& request, const Patience& patience,
                                           std::shared_ptr<engine::Lease> held, const std::exception_ptr& broken);
  static void overlook(Request& request, const Patience& patience, const std::exception_ptr& broken);
  std::shared_ptr<engine::Lease> try_first(Request& request, const Patience& patience);
  std::shared_ptr<engine::Lease> look_into_lock(Request& request, const Patience& patience);
  store::Blocked blocked(const Name& name, const std::stop_token& stop, Instant deadline = Instant::max());
  template <class Call>
  auto ask_unless_locked(const Name& name, Instant deadline, const std::stop_token& stop, Call ask)
      -> decltype(ask(Deadline::max()));
  std::optional<Released> leave(Releasing& one);
  Released free(Releasing& one, Instant deadline);
  bool hand_over(const std::shared_ptr<engine::Lease>& held, Instant deadline, bool& in_doubt, bool& yields);
  std::uint32_t reserved_for(const engine::Lease& held, const engine::WaitQueues::WaiterPtr& waiter, Instant deadline);
  bool keeps_history(Instant deadline);
  std::shared_ptr<engine::Lease> pass_on(const std::shared_ptr<engine::Lease>& held,
                                         const engine::WaitQueues::WaiterPtr& waiter);
  void disown(const engine::Lease& held, const std::string& heir);
  static bool may_go_on_in_memory(const LockOptions& options, const engine::Lease::Terms& terms) noexcept;
  std::optional<Released> linger(const std::shared_ptr<engine::Lease>& held, Instant deadline, bool& in_doubt);
  std::shared_ptr<engine::Lease> next_in_memory(engine::Lease& held, const engine::Lease::Terms& terms,
                                                Instant deadline);
  std::shared_ptr<engine::Lease> next_by_statement(const engine::Lease& held, const engine::Lease::Terms& terms,
                                                   Instant deadline, bool& in_doubt);
  std::shared_ptr<engine::Lease> take_lingering(Request& request, const Deadline& deadline);
  std::shared_ptr<engine::Lease> take_lingering(const Name& name, const LockOptions* options,
                                                const engine::Lease::Terms& terms, const engine::JobRef& job,
                                                Instant called, const Deadline& deadline);
  bool let_go(const engine::Lease& lingering, const Deadline& deadline) noexcept;
  void look_for_lingering(Duration time);
  void let_linger_no_more(const std::string& name, const Deadline& deadline) noexcept;
  void let_nothing_linger(Instant deadline) noexcept;
  bool await_lingering(const Name& name, const Patience& patience);
  Taken lock_in(const TransactionRef& transaction, const Name& name, const Deadline& until, const LockOptions* lease);
  void tell_deadlock(const Request& request, const Error& error);
  void tell_end(const Name& name, Instant begun, bool waited, const engine::Said& said);
  static engine::Said said_by(const LockOptions& options) noexcept { return {options.label, options.job.name()}; }
  void hold(const std::shared_ptr<engine::Lease>& held, const engine::JobRef& job, Instant since);
  void free_later(const Request& request);
  bool free_late_grant(const Name& name, const Deadline& deadline);
  bool free_late_grant(const Name& name, const store::Availability& availability, const Deadline& deadline);
  void expect_late_attempts(const engine::Lease& held);
  void bar_late_attempts(const engine::Lease& held, const Deadline& deadline) noexcept;
  store::AcquireRequest acquire_request(Request& request, Instant sent) const;
  store::Availability look(Request& request, const Deadline& until) const;
  std::optional<std::shared_ptr<engine::Lease>> take_up(Request& request, const store::Granted& answer, Instant sent,
                                                        bool again, const Deadline& bound);
  void start_over(Request& request, const Deadline& deadline);
  std::shared_ptr<engine::Lease> try_once(Request& request, Instant deadline, std::stop_token stop);
  bool granted_here(const store::Availability& availability) const {
    return availability.holder.starts_with(engine_id_);
  }
  // A mark is for a release that notifies, and for who lets a lock linger.
  bool marks() const noexcept { return options_.listen || lingers_somewhere_.load(); }
  void mark(const Name& name, Deadline deadline);
  bool above_floor(Token token, const Deadline& deadline);
  bool catch_up(store::CallerTransaction& caller);
  void prove(store::CallerTransaction& caller, const std::shared_ptr<engine::Lease>& held, const FenceOptions& options,
             bool gone);
  template <class Call>
  auto retry(Instant deadline, const std::stop_token& stop, bool& in_doubt, Call ask) -> decltype(ask(Deadline::max()));
  template <class Call>
  auto retry(const Deadline& deadline, Call ask) -> decltype(ask(Deadline::max()));

  Instant end_by_ = Instant::max();
  const EngineOptions options_;
  const std::string engine_id_;
  const std::shared_ptr<store::LockTable> table_;
  const std::shared_ptr<engine::EventQueue> events_;
  engine::ReentranceTable entries_;
  engine::Adoptions adoptions_;
  engine::BusyCache busy_;
  std::atomic<BootClock::rep> history_asked_{0};
  std::atomic<bool> history_kept_{true};
  std::atomic<bool> running_{false};  // the threads without which no lease is asked for
  engine::TrustTimer timer_;
  engine::LeaseRenewer renewer_;
  engine::Reaper reaper_;
  const std::shared_ptr<engine::WaitQueues> queues_ = std::make_shared<engine::WaitQueues>(options_.polling.longest);
  engine::Notifier notifier_;
  const std::unique_ptr<engine::LingeringLeases> lingering_;  // null: nothing lingers here
  std::atomic<bool> lingers_somewhere_{false};                // as far as is known: in any engine on this table
  std::atomic<BootClock::rep> looked_for_lingering_{0};       // when it was asked last
};

}  // namespace v0
}  // namespace dlock
