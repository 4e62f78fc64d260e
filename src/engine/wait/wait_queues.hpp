// Who in this process waits for which name, and in what order.
#pragma once

#include "dialects/listener.hpp"
#include "engine/lease/lease.hpp"
#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/name.hpp"

#include <dlock/options.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::engine {

// What somebody wants, as far as a releaser has to know it to hand over. Lives as long as either of them needs it.
struct WaitRequest {
  WaitRequest(Name the_name, LockOptions the_options, LeaseTerms the_terms, std::string the_owner,
              std::string the_actor, JobRef the_job, Instant called = BootClock::now())
      : name(std::move(the_name)),
        options(std::move(the_options)),
        terms(the_terms),
        owner(std::move(the_owner)),
        actor(std::move(the_actor)),
        job(std::move(the_job)),
        since(called) {}

  Name name;
  LockOptions options;
  LeaseTerms terms;
  std::string owner, actor;
  JobRef job;  // whose request it is; empty: nobody's
  Instant since;
  Mode mode = Mode::exclusive;  // what is asked for
  bool by_job = false;          // it may enter what its job is granted meanwhile
  // An attempt of its own got no answer, or it has a row. Written while nobody can reserve it.
  bool by_statement = false;
};

// A line of waiters for each name. Only the head of a line talks to the database; the others sleep until they are the
// head, or are handed what they wait for. Observers wait for news of a name without wanting to be next.
// Threads: any.
class WaitQueues {
 public:
  enum class WakeReason {
    notified,  // something may have changed
    head,      // the waiter is the head of its line now
    handed,    // it has been granted its request
    time,
    stopped,
  };

  // `floor`: a head looks at least so often, whatever it was told.
  explicit WaitQueues(Duration floor) : floor_(floor) {}

  class Waiter;
  using WaiterPtr = std::shared_ptr<Waiter>;

  // At the end of the line; with a ticket before all who have none or a later one. `takes`: a releaser may hand over.
  // `news`: who waits without a thread is called by it, whenever look_up() may say something else; it must not block,
  // nor call anything here. `quiet`: the name was granted in this process just now, so that it need not look at once.
  WaiterPtr join(std::shared_ptr<WaitRequest> wanted, std::int64_t ticket, bool takes, std::function<void()> news = {},
                 bool quiet = false);
  WaiterPtr observe(const std::string& name, std::string owner);
  // Gives a waiter a ticket, and with it its position in the line.
  void give_ticket(const WaiterPtr& waiter, std::int64_t ticket);
  // The waiter's request is put as `owner` from now on.
  void rename(const WaiterPtr& waiter, const std::string& owner);
  // Who waits behind what was handed over was told so in passing, and need not look at once.
  struct WaiterState {
    bool head = false;
    bool quiet = false;     // it became the head because its name was granted in this process
    bool notified = false;  // by a release of its name
    bool yields = false;    // others are to have their turn first
    bool ask = false;       // its owner may have been granted the request already: looking is not enough
    bool dead = false;      // its row in the waiters' table has expired
    bool unheard = false;   // let_go_unheard() was called since its line began
    std::int64_t ticket = 0;
  };
  // Begins a look at the world: what is heard from now on wakes the next rest().
  WaiterState attend(const WaiterPtr& waiter);
  // Until there is something to do for it, or `until`; until `deadline` while a releaser is about to hand over to it.
  WakeReason rest(const WaiterPtr& waiter, Instant until, Instant deadline, const std::stop_token& stop);
  // The same for who waits without a thread. Empty: there is nothing to do before `until`, which is made earlier where
  // it has to ask again before that, unless it is called.
  std::optional<WakeReason> look_up(const WaiterPtr& waiter, Instant& until, Instant deadline,
                                    const std::stop_token& stop);
  // What the waiter requests, for whom it is reserved.
  static const WaitRequest& wanted(const WaiterPtr& waiter);
  // The ticket that it had when it was reserved.
  static std::int64_t ticket(const WaiterPtr& waiter);
  // Whether it was the head of its line from the beginning: else others have seen to it that somebody listens.
  static bool led_at_once(const WaiterPtr& waiter);
  // Whether others waited behind it when it was reserved.
  static bool followed(const WaiterPtr& waiter);
  // It leaves the line; `granted`: since it has what it requested. What was handed to it meanwhile, or nothing.
  std::shared_ptr<Lease> leave(const WaiterPtr& waiter, bool granted = false);

  // Whether anybody may wait for the name, without a lock: never wrong for who joined before a release was asked for.
  bool anybody() const noexcept { return waiting_.load() > 0; }
  bool anybody(const std::string& name) const;
  // As well as whether anybody waits for news of it without standing in line: both rely on the mark of one of them.
  bool anybody_listens(const std::string& name) const;
  // Whether it is of no use to ask the database for the name: others are in line here, or it goes from thread to thread
  // in memory just now, and who joins is its next.
  bool is_next_in_line(const std::string& name) const;

  // The head, if it sleeps and takes what it is handed: it stays where it is until settle(). Empty: nobody.
  // `soon`: somebody is about to come, or to fall asleep, if the line goes on as it did: that is waited for, for as
  // long as a thread takes to be woken.
  WaiterPtr reserve(const std::string& name, bool soon = false);
  // How it ended: with the grant, or without; `doubt`: perhaps with one. False: it has given up meanwhile, so that what
  // it was granted is nobody's.
  bool settle(const WaiterPtr& waiter, std::shared_ptr<Lease> grant, bool doubt = false);

  // A release in this process has ended, however it did: wakes who can take `name`, the head of its line, and
  // observers. `yields`: others are to have their turn first.
  void wake_head(std::string_view name, bool yields = false);
  // What this process held, or may have held, is not its own to release any more: whoever waits for it looks, and marks
  // the name as if it were another's.
  void let_go_unheard(std::string_view name);
  // The job has been granted `name`: those of it who wait in line need not be granted it.
  void wake_job(const std::string& name, std::string_view job);
  // What was heard from elsewhere, and of this process's own doings. A head whom a notification is not for, or whose
  // name was granted in this process and not released, looks a little later, unless it is heard of again: who read that
  // name may have read it before it gave up, and a grant may have been lost.
  void hear(const dialects::Notification& heard);
  // Anything may have happened.
  void wake_all();

  // How many wait, for each name.
  std::map<std::string, std::size_t, std::less<>> counts() const;

  // Calls `hook`, on the thread of whoever begins to wait in line, for each lease of that name that listens. Set before
  // use.
  using Asked = std::function<void(const std::shared_ptr<Lease>&)>;
  void on_wait(Asked hook) { on_wait_ = std::move(hook); }
  // The lease is told of those who wait in line for its name, and at once if somebody does.
  void tell(const std::shared_ptr<Lease>& held) noexcept;
  void tell_no_more(const std::shared_ptr<Lease>& held) noexcept;
  // Of those who wait in line for somebody to let go of it; empty: nobody does.
  std::optional<WantedSince> wanted_since(const Lease& held) const;

  // What heads and observers wait for, and whom they saw holding it.
  std::vector<dialects::AwaitedLock> awaited() const;
  // Notes who holds what the waiter waits for. True: that is new.
  bool saw(const WaiterPtr& waiter, std::string holder);
  // Notes whether what the line waits for could neither be had nor be seen to be held by anybody. So it is at first.
  void blocked(const WaiterPtr& waiter, bool yes);
  bool blocked(const WaiterPtr& waiter) const { return blocked(name_of(waiter)); }
  bool blocked(const std::string& name) const;

  // Waiters that have a row in the waiters' table. One for people alone may last longer without being renewed than one
  // on which others depend.
  enum class RowKind { none, depended_on, for_people };
  void registered(const WaiterPtr& waiter, RowKind kind);
  struct WaiterRow {
    WaiterPtr waiter;
    std::string name, owner;
  };
  std::vector<WaiterRow> rows(RowKind kind) const;
  // The row has expired: its ticket is void. Until it has another one.
  void died(const WaiterPtr& waiter);
  void revived(const WaiterPtr& waiter);

 private:
  // That of the WaitQueues of a Waiter, which guards it.
  static constexpr MutexKind waiters_mutex{};

  struct WaitQueue;
  std::vector<std::shared_ptr<Lease>> listening(const Waiter& waiter) const REQUIRES(mutex_, waiters_mutex);
  static bool wants(const Waiter& waiter, const Lease& held);
  static void insert(WaitQueue& line, const WaiterPtr& waiter) REQUIRES(waiters_mutex);
  // `quiet`: its name was granted in this process just now, and it is to look in so long. 0: at once. `soon`: the grant
  // may go on to it in memory, without a statement. Answers who is to be stirred, or nobody.
  static WaiterPtr promote(WaitQueue& line, Duration quiet = {}, bool soon = false) REQUIRES(waiters_mutex);
  WaiterPtr remove(const WaiterPtr& waiter, Duration quiet, bool granted, bool soon = false)
      REQUIRES(mutex_, waiters_mutex);
  static void stir(const WaiterPtr& waiter) REQUIRES(waiters_mutex);
  static void wake(WaitQueue& line, std::string_view owner, bool everything) REQUIRES(waiters_mutex);
  static const std::string& name_of(const WaiterPtr& waiter) noexcept;
  static bool has_news(const Waiter& waiter) noexcept REQUIRES(waiters_mutex);
  static Instant bound(const Waiter& waiter, Instant until, Instant deadline) noexcept REQUIRES(waiters_mutex);
  static void spin(const Waiter& waiter, unsigned seen) noexcept;
  WaiterPtr reserve_now(const std::string& name);
  using Queues = std::map<std::string, WaitQueue, std::less<>>;
  // It is over when a release in this process has ended: see wake_head().
  void note_round(const std::string& name) REQUIRES(mutex_);
  void end_round(WaitQueue& line) REQUIRES(mutex_);
  void drop(Queues::iterator idle) REQUIRES(mutex_);
  static WakeReason woken(Waiter& waiter, const std::stop_token& stop) noexcept REQUIRES(waiters_mutex);

  const Duration floor_;
  mutable AnnotatedMutex mutex_;
  Queues queues_ GUARDED_BY(mutex_);
  std::multimap<std::string, std::weak_ptr<Lease>, std::less<>> told_ GUARDED_BY(mutex_);
  std::atomic<std::size_t> waiting_{0}, telling_{0}, rounds_{0};
  Asked on_wait_{};
};

struct WaitQueues::WaitQueue {
  std::vector<WaiterPtr> queue;  // the first is the head
  std::vector<WaiterPtr> observers;
  bool unheard = false;                       // a release of the name may not be heard of without a mark
  bool granted = false;                       // to one of this line, and no release of it was heard of
  bool blocked = true;                        // nobody was seen who holds it, if anybody has looked at all
  Instant goes_round_until = Instant::min();  // so long it may be handed on in memory, if nobody is heard to free it

  bool idle() const noexcept { return queue.empty() && observers.empty(); }
  bool goes_round() const noexcept { return goes_round_until != Instant::min() && BootClock::now() < goes_round_until; }
};

// One that waits.
class WaitQueues::Waiter {
 public:
  Waiter(std::string name, std::string owner) : name_(std::move(name)), owner_(std::move(owner)) {}
  Waiter(std::shared_ptr<WaitRequest> request, std::int64_t ticket, bool takes, std::function<void()> news)
      : name_(request->name.text()),
        request_(std::move(request)),
        takes_(takes),
        owner_(request_->owner),
        status_{.ticket = ticket},
        news_(std::move(news)) {}

 private:
  friend class WaitQueues;
  enum class State { awake, asleep, reserved, handed, left };

  const std::string name_;
  const std::shared_ptr<WaitRequest> request_;  // empty: an observer
  const bool takes_ = false;
  bool led_at_once_ = false;  // touched by who waits, and nobody else
  // Written by who reserves it, and read by nobody else until it is settled:
  std::int64_t reserved_ticket_ = 0;
  bool followed_ = false;

  std::string owner_ GUARDED_BY(waiters_mutex);
  WaiterState status_ GUARDED_BY(waiters_mutex);
  State state_ GUARDED_BY(waiters_mutex) = State::awake;
  bool notified_ GUARDED_BY(waiters_mutex) = false, promoted_ GUARDED_BY(waiters_mutex) = false;
  bool everything_ GUARDED_BY(waiters_mutex) = false;
  // What it waits for may be handed to it in less time than sleeping takes.
  bool soon_ GUARDED_BY(waiters_mutex) = false;
  std::atomic<unsigned> stirred_{0};  // written with the mutex held
  RowKind row_ GUARDED_BY(waiters_mutex) = RowKind::none;
  std::string holder_ GUARDED_BY(waiters_mutex);
  std::shared_ptr<Lease> grant_ GUARDED_BY(waiters_mutex);
  Instant nudge_ GUARDED_BY(waiters_mutex) = Instant::max();
  std::function<void()> news_ GUARDED_BY(waiters_mutex);  // empty: a thread waits for changed_
  std::condition_variable_any changed_;

  // Something may be to be done for it. False: a thread is to be woken.
  bool call() REQUIRES(waiters_mutex) {
    ++stirred_;
    if (news_) news_();
    return news_ != nullptr;
  }
  void stir() REQUIRES(waiters_mutex) {
    if (!call()) changed_.notify_all();
  }
};

inline const WaitRequest& WaitQueues::wanted(const WaiterPtr& waiter) { return *waiter->request_; }
inline std::int64_t WaitQueues::ticket(const WaiterPtr& waiter) { return waiter->reserved_ticket_; }
inline bool WaitQueues::led_at_once(const WaiterPtr& waiter) { return waiter->led_at_once_; }
inline bool WaitQueues::followed(const WaiterPtr& waiter) { return waiter->followed_; }
inline const std::string& WaitQueues::name_of(const WaiterPtr& waiter) noexcept { return waiter->name_; }

}  // namespace dlock::engine
