// How locks are asked for.
#pragma once

#include <dlock/export.hpp>
#include <dlock/grant.hpp>
#include <dlock/holder.hpp>
#include <dlock/lock.hpp>
#include <dlock/lock_set.hpp>
#include <dlock/options.hpp>
#include <dlock/reaping.hpp>
#include <dlock/refusal.hpp>
#include <dlock/result.hpp>
#include <dlock/stats.hpp>
#include <dlock/subscription.hpp>
#include <dlock/transaction.hpp>
#include <dlock/waiter.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dlock {
inline namespace v0 {

// The lock engine of one table in one database.
// Threads: every member from any thread. Calls on an engine that was moved from throw misuse.
// After fork() the child's calls throw misuse, and all that it may do with an engine of its parent's is to destroy it.
// It may open one of its own, but none on SQLite while its parent has one on any file (SQLite's own mutexes). A fork()
// waits for connections that are being opened or closed on other threads, ten seconds at most: a child of such a moment
// would find mutexes of the client libraries locked for ever.
// Owns: its connections (at most EngineOptions::connections, one to listen, and for as long as their server is at work
// those of calls that were given up, 100 at most) and its threads (all signals blocked, but for those that a thread's
// own fault raises). Destroying it does not release: held Locks stay valid and renewed.
// The last of the engine and its Locks to go ends the threads, also inside a callback, and waits a moment for the
// server where acquires were given up before their answer came; with a database that hangs, or
// callbacks that do, that takes at most timeouts.request: a callback that is still under way then is left to itself,
// and no other begins. Destroying it while other threads wait on it, as exit() does with a global one, ends their
// waits: with misuse, at once. It returns when all calls under way have ended, at most timeouts.request later, and
// they may then still end by themselves. No call may begin once the destructor has. A global engine that exit() is to
// destroy is constructed where it is declared: one that is assigned later outlives what it was made of.
// Names: 1 to 255 bytes of UTF-8 without NUL, compared as bytes. Anything else is misuse before any SQL.
// Fails: every call may throw Error{unavailable, timeout, in_doubt, schema, permission, misuse}, one that waits also
// Error{deadlock}. Busy is no error.
class DLOCK_EXPORT Engine {
 public:
  // Opens and checks the database behind `url`: postgresql://, mysql:// (mariadb://) or sqlite:PATH.
  explicit Engine(std::string_view url, EngineOptions options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // A lock that is held already may be entered again: Reentrance in <dlock/options.hpp> says by whom.

  // Where an answer is empty, `refusal`, if given, tells why and who is in the way, by one more statement; of a call
  // that was stopped without one. A grant leaves it as it was.

  // One attempt. Empty: busy, or locked.
  [[nodiscard]] std::optional<Lock> try_lock(std::string_view name, const LockOptions& options = {},
                                             Refusal* refusal = nullptr);

  // Who waits: threads of one engine stand in line for a name, and only the first of them talks to the database; it is
  // woken by a release (see docs/protocol.md), by the end of the lease, and by looking at intervals. A
  // release hands the lock over to the first of its own engine, within EngineOptions::hand_overs.in_a_row.
  // Fairness in <dlock/options.hpp> says who comes first among processes. A deadlock among waiters that hold locks ends
  // within about a second: the one that began to wait last gets Error{deadlock}, which names the cycle. What is not
  // seen: docs/cpp.md, Deadlocks.

  // Waits at most `wait`, or until the token is stopped. Empty: timed out, or stopped; with a wait of 0 busy, or
  // locked. Never before `wait` has passed.
  [[nodiscard]] std::optional<Lock> try_lock_for(std::string_view name, SaturatingDuration wait,
                                                 const LockOptions& options = {}, std::stop_token stop = {},
                                                 Refusal* refusal = nullptr);

  // Waits as long as it takes.
  Lock lock(std::string_view name, const LockOptions& options = {});

  // Waits until granted or stopped. Empty: stopped.
  [[nodiscard]] std::optional<Lock> lock(std::string_view name, const LockOptions& options, std::stop_token stop,
                                         Refusal* refusal = nullptr);
  // The same, in the order in which the standard's waits have it.
  [[nodiscard]] std::optional<Lock> lock(std::stop_token stop, std::string_view name, const LockOptions& options = {},
                                         Refusal* refusal = nullptr);

  // Several names at once, all of them or none, in any order; one that is given twice counts once. All are held
  // exclusively, as `options` say, each as a lock of its own: token, trust and renewal, and whoever holds one already
  // enters it again. Misuse without a name. To hold names that others take together as well costs no deadlock, whatever
  // the order they are given in.
  // What is seen to be busy is answered by a read, and nothing is written. Otherwise all are asked for in one statement
  // (of EngineOptions::combine names at most; Reentrance::node: one by one), and where one is not granted the others
  // are given back at once: for that moment they are held, their tokens have grown, and who waits for them is woken.
  // Who waits holds none of the names meanwhile: it waits for the first name in the way, as who wants that one alone
  // (in line, with Fairness::fifo in order of arrival), and with that one tries the others. Where it has to give back,
  // the next one in the way is waited for. So it takes its chances with each of the names, and there is no order among
  // those who want several: where others queue (fifo) for two of them without a pause, it may wait for as long as they
  // do.
  // LockOptions::at_least counts from when all are granted, by one more statement each: what had to be given back is
  // open. `refusal` names the one that was in the way. The other rules are those of try_lock, try_lock_for and lock.
  // Fails: as those do; then none is held.

  // One attempt. Empty: one of them is busy, or locked.
  [[nodiscard]] std::optional<LockSet> try_lock_all(std::vector<std::string> names, const LockOptions& options = {},
                                                    Refusal* refusal = nullptr);
  // Waits at most `wait` for all of them together, or until the token is stopped. Empty: timed out, or stopped.
  [[nodiscard]] std::optional<LockSet> try_lock_all_for(std::vector<std::string> names, SaturatingDuration wait,
                                                        const LockOptions& options = {}, std::stop_token stop = {},
                                                        Refusal* refusal = nullptr);
  // Waits as long as it takes.
  LockSet lock_all(std::vector<std::string> names, const LockOptions& options = {});
  // Waits until granted or stopped. Empty: stopped.
  [[nodiscard]] std::optional<LockSet> lock_all(std::vector<std::string> names, const LockOptions& options,
                                                std::stop_token stop, Refusal* refusal = nullptr);

  // Without a thread that waits: the calls above, whose answer comes to a handler. They return at once, and throw only
  // misuse, or unavailable where the system has no thread for them; then the handler is not called. Otherwise it is
  // called once, on EngineOptions::executor, never inside of the call: with the Lock, with why it was refused,
  // or with the Error. Two threads of the engine ask for all of them, many in one statement, and a third one looks at
  // the clock; who waits costs memory, and behind the first of its name less than 200 bytes, or some 300 with a stop.
  // A thread is nobody's work here: what is taken is the job's that is given, or current for the caller
  // (LockOptions::job), and without one each grant is one of its own, which nobody enters (Reentrance::thread) and no
  // deadlock is seen with. Nobody re-enters by thread, and none waits for itself: a second wish of one who holds the
  // name is busy.
  // Deadlines and stops as above: the answer comes by then, whatever the database does, and what is granted later is
  // given back in the background. When the engine ends first, the answer is misuse, and handlers that have not been
  // called by then are still handed to the executor; without one those are never called whose turn has not come when
  // the destructor returns, because another one was under way for all of timeouts.request. Where the engine ends inside
  // of a handler the others are called after it, if it returns by then.
  using LockHandler = std::function<void(Result<Lock>)>;
  void async_try_lock(std::string_view name, const LockOptions& options, LockHandler handler);
  void async_try_lock_for(std::string_view name, SaturatingDuration wait, const LockOptions& options,
                          LockHandler handler);
  void async_try_lock_for(std::string_view name, SaturatingDuration wait, const LockOptions& options,
                          std::stop_token stop, LockHandler handler);
  void async_lock(std::string_view name, const LockOptions& options, LockHandler handler);
  void async_lock(std::string_view name, const LockOptions& options, std::stop_token stop, LockHandler handler);
  // As Lock::release(): when this returns the lock is no longer the caller's, who may ask for it again; its row is
  // freed later, and then the handler, if any, is told what became of it. Locks that are released at one time go
  // together. While the database is silent that may come as much as timeouts.request later. A Lock that is destroyed
  // releases as well, but blocks for that.
  void async_release(Lock lock, std::function<void(Released)> handler = {});

  // Locks the name inside the caller's own open transaction on the same database (SELECT … FOR UPDATE), until it ends
  // by commit, rollback, also to a savepoint from before it, or the end of its connection. Excludes leases on the same
  // name, and is excluded by them. Waits at most `wait` (0: one attempt), without holding anything up meanwhile. Empty:
  // busy or locked, or timed out if it waited. The connection keeps its settings, and the transaction its savepoints
  // and writes, whatever the answer. On PostgreSQL the server ends the transaction when its client is silent for longer
  // than EngineOptions::lease (see bound_idle; than the lease that begins with its commit, if one does). To wait for
  // another name in it is no silence, as long as the lock table answers.
  // At REPEATABLE READ and SERIALIZABLE lock first: what was committed since the transaction's snapshot is conflict. On
  // MySQL and MariaDB a row that was taken in the last moment stays locked until the transaction ends. On SQLite the
  // transaction becomes the one writer of the file, also by an attempt in vain; one that writes already does not wait
  // for a lease. So who waits, and loses the race for a name that was released, waits on only on PostgreSQL at READ
  // COMMITTED; elsewhere the answer may be empty before its time.
  // The token counts from the commit on: one that was rolled back is handed out again.
  // Once more in the same transaction it is granted again, with the next token; only the last one is stored. After a
  // grant that leaves a lease behind, or under a lease of one's own, it is busy.
  // Fails: conflict (roll back and run the transaction again), misuse (no transaction is open, a failed one, a result
  // left to read; or the connection leads to another database than the lock table's, and both are named), unavailable,
  // timeout, schema, permission.
  [[nodiscard]] std::optional<Token> try_lock_in(TransactionRef transaction, std::string_view name,
                                                 SaturatingDuration wait = {});
  // A template so that `{}` in the last place means the options of a lease, and nothing else.
  template <std::same_as<Refusal> R>
  [[nodiscard]] std::optional<Token> try_lock_in(TransactionRef transaction, std::string_view name,
                                                 SaturatingDuration wait, R* refusal) {
    return lock_in(transaction, name, wait, refusal);
  }

  // The same, and leaves a lease behind: it begins with the transaction's commit, or never if that fails. Take charge
  // of it with adopt(name, grant) after the commit, here or in another process; until then nobody renews it. Its time
  // counts from the grant: one that is shorter than the rest of the transaction is over at the commit.
  [[nodiscard]] std::optional<Grant> try_lock_in(TransactionRef transaction, std::string_view name,
                                                 SaturatingDuration wait, const LockOptions& lease,
                                                 Refusal* refusal = nullptr);

  // Waits until the name can be taken, without taking it. False: time is up, or stopped. What an open transaction has
  // locked (try_lock_in) cannot be seen, and counts as free.
  [[nodiscard]] bool wait_free(std::string_view name, SaturatingDuration wait, std::stop_token stop = {});

  // Takes charge of a grant made elsewhere (Lock::detach, try_lock_in, another process), and renews it on the way: by
  // options.lease, or by the length it had. It keeps the token that Lock::grant told and gets another owner, in the
  // same write: of two who adopt one grant one has it and the other gets an empty answer, and whoever held it under the
  // old owner has lost it.
  // Empty: it is not, or not any more, a grant of this name. If it was shared, the reaper does not tell of its holder
  // as of one who died any more: that has been written, where that was possible within timeouts.release.
  // Whoever gets in_doubt adopts the grant again, through the same engine: nobody else can any more, if it was adopted.
  // Misuse for a grant that is shared by the entries of a node (Reentrance::node): enter it instead.
  [[nodiscard]] std::optional<Lock> adopt(std::string_view name, const Grant& grant, const LockOptions& options = {});

  // Makes a grant made elsewhere last `lease` from now at least, or the length it had, for a holder that is no Lock: a
  // script, a program in another language. It keeps its owner. False: it is not, or not any more, a grant of this name.
  [[nodiscard]] bool renew(std::string_view name, const Grant& grant, std::optional<SaturatingDuration> lease = {});

  // For a program that ends: releases every lease that this engine holds now, whoever has its Lock, those of mutexes
  // and Elections as well; many in one statement, and all of them within timeouts.release. What is not confirmed by
  // then the engine tries on with, for as long as it is there, and at the latest it ends with its lease.
  // Locks of these leases hold nothing from the beginning of this call on, on whatever thread: they are not valid(),
  // and what works under one is told by its lost(). It is no loss, though: loss() stays empty, and the event is
  // `released`. check, extend, ensure, update_metadata and the fences throw lost; release() answers what became of the
  // lease, and `unconfirmed` while that is not known. Of a transaction that has fenced one before, what it commits was
  // written under the lock: the release waits for its end, or is not confirmed.
  // Who waits goes on waiting, and may be granted what was freed; an Election campaigns again, and its on_deposed may
  // come when another leads: stop them first. What is granted while this runs stays held. With what others of its node
  // hold on to, only the entries of this engine end.
  struct ReleasedAll {
    std::size_t freed = 0, still_held = 0, was_lost = 0, unconfirmed = 0;  // leases, as Released says
  };
  ReleasedAll release_all();

  // How many entries there are of the lease that another acquire of this name would enter here and now, by the calling
  // thread, or by the job that is current for it (Reentrance::thread); 0: it would ask for a new one. So it says
  // nothing of locks that nobody enters this way: of a node, with Reentrance::none, adopted, moved here from another
  // thread. No statement.
  int hold_count(std::string_view name) const;
  bool held_by_me(std::string_view name) const { return hold_count(name) > 0; }

  // What the table says of a name, whatever its state. Empty: there is no row.
  std::optional<Holder> inspect(std::string_view name);

  // All rows whose name matches the shell pattern (of UTF-8 characters, whatever the locale), ordered by name.
  std::vector<Holder> list(std::string_view glob = "*");

  // The newest grants of a name that have ended, at most so many, the newest first; where several held it, one for each
  // of them. Only where the database keeps a history (see <dlock/history.hpp>), from its making on and as far as nobody
  // has cut it; else `schema`, with the command that makes it. Needs no EngineOptions::history.
  std::vector<HistoryEntry> history(std::string_view name, std::size_t limit = 100);

  // Those who wait for names that match the shell pattern, as far as they have a row (see <dlock/waiter.hpp>), ordered
  // by name, ticket and time.
  std::vector<Waiter> waiters(std::string_view glob = "*");

  // Those who hold names together that match the shell pattern, one by one, under live leases (see <dlock/waiter.hpp>),
  // ordered by name and token.
  std::vector<Sharer> sharers(std::string_view glob = "*");

  // Frees a lock whose token is still `seen`, and makes every later renewal by its holder fail. False: it had moved on.
  // The reason, at most 255 bytes of UTF-8, stays in the row until the next grant (LastRun::reason). What is left of
  // those who shared it is cleared away after that, for which their rows are waited for 5 s at most.
  [[nodiscard]] bool force_release(std::string_view name, Token seen, std::string_view reason = {});

  // One round of the reaper: settles at most `batch` leases that expired without release (each is told and counted
  // once, `abandoned`, and so is each of several who held a name), and removes at most `batch` rows idle for longer
  // than the retention: in two rounds of one engine at least `grace` apart, so that tokens never fall. One reaper works
  // on a table at a time, whichever process it is in. EngineOptions::reaper.every makes the engine do this by itself.
  struct Reaped {
    std::size_t removed = 0, abandoned = 0;
    bool elsewhere = false;   // another reaper is at work: nothing was done
    std::size_t history = 0;  // rows of history that were more than EngineOptions::history
  };
  Reaped reap(std::size_t batch = 1000);

  // One pass over the whole table: settles, raises the floor, waits out the grace, removes. Waits while another reaper
  // is at work. Ends early, with what was done so far, when stopped; a statement that is under way then is waited for,
  // timeouts.request at most.
  Reaped reap_all(const Reaping& reaping = {}, std::stop_token stop = {});

  // Removes the row of one name that nobody uses, so that `list` does not show it any more; the reaper does so by
  // itself for what is idle for long. As it, it raises the floor first and waits out EngineOptions::reaper.grace, so
  // that tokens never fall: the next grant of the name has a larger one. It takes that long (60s) where there is
  // something to remove, and no time where not. Never removes what is held, closed, waited for, or expired without
  // having been settled, nor what was used while the grace ran. `row`, if given, tells how the name stood where it was
  // in use or wanted.
  Removal remove(std::string_view name, Holder* row = nullptr, std::stop_token stop = {});

  // What the engine has done and does, in numbers, without a statement and without waiting for the database.
  Stats stats() const;

  // Has `observer` told what happens from now on, until the subscription ends: like EngineOptions::observer, and beside
  // it and any number of others, each on a thread of its own, so that none delays another. What waits for an observer
  // that blocks is limited: beyond 4096 events the oldest are dropped, and counted (Stats::events_dropped), but no loss
  // and no abandoned lease. Misuse if it is empty.
  Subscription observe(std::function<void(const Event&)> observer);

  // Creates or upgrades the table: the same as `dlock-migrate up`.
  static void install_schema(std::string_view url, const EngineOptions& options = {});

 private:
  friend class ThreadLocks;
  friend class Semaphore;
  friend class Election;
  friend class LeaderObserver;
  struct Handle;
  explicit Engine(std::unique_ptr<Handle> handle) noexcept;
  class Call;
  class Async;
  void async_acquire(std::string_view name, std::optional<SaturatingDuration> wait, const LockOptions& options,
                     std::stop_token stop, LockHandler handler);
  std::optional<Token> lock_in(const TransactionRef& transaction, std::string_view name, Duration wait,
                               Refusal* refusal);
  Engine same() const;                           // another handle on the same core
  void check(const LockOptions& options) const;  // throws misuse where asking with them would
  const std::string& label() const;              // which all leases have that are given none of their own
  const Handle& here() const;                    // throws misuse in an engine that was moved from, and after fork()
  std::unique_ptr<Handle> handle_;               // shares the core (pool, renewer, timer) with every Lock
};

}  // namespace v0
}  // namespace dlock
