// What can be done with a granted lease.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/export.hpp>
#include <dlock/grant.hpp>
#include <dlock/token.hpp>
#include <dlock/transaction.hpp>
#include <dlock/waiter.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

class Engine;
class LockSet;
class ThreadLocks;

// Why a lease was lost.
enum class Loss {
  refused,      // the database said that the lease is another owner's, or nobody's
  unconfirmed,  // trust ran out before a renewal was confirmed
  forced,       // somebody released it by force, as far as the row still told so
  max_hold,     // it was held as long as LockOptions::max_hold allows
};

// What became of a release.
enum class Released {
  freed,        // the row was freed; where an answer was lost: it is not ours any more
  still_held,   // this entry has left, another one holds on (Reentrance)
  was_lost,     // the lease had been lost before; nobody else's was touched
  unconfirmed,  // no answer in time; the engine tries on, and at the latest the lease ends by itself
};

DLOCK_EXPORT std::string_view to_string(Loss loss) noexcept;
DLOCK_EXPORT std::string_view to_string(Released released) noexcept;

// How long metadata stays.
enum class Keep {
  until_free,  // with the grant: gone when it is released, settled or taken over
  for_next,    // also for those who hold the lock after it, until one of them keeps something else
};

// How a transaction is fenced.
struct FenceOptions {
  // Whether a fence that fails also makes the transaction impossible to commit, so that a swallowed exception, or a
  // savepoint to go back to, stores nothing. Of a refused one (lost) nothing is committed whatever the caller does:
  // PostgreSQL: it is rolled back, and until the caller's ROLLBACK an empty one that has failed stands in its place.
  // MySQL, MariaDB: the caller's connection is killed. SQLite: its commit fails, and rolls it back; through a SqlRunner
  // it is rolled back at once, and the connection refuses to write until "PRAGMA query_only = OFF".
  // What fails otherwise (conflict, timeout, …) hardly ever costs the connection: it is rolled back, and until the
  // caller's ROLLBACK an empty transaction that cannot write stands in its place (SQLite: the commit fails; with a
  // SqlRunner that is left to the caller).
  bool doom = true;
  unsigned attempts = 10;  // with_fence: runs of the transaction at most, while each ends in conflict
};

// One granted lease, or a further entry into one (Reentrance::thread): then owner, token, trust and loss are those of
// the lease, shared by all of its entries. Of those of a node each is a lease of its own, and they share the token.
// Threads: lost, wanted, asked, valid, remaining, check, loss, name, token and owner from any; the rest one thread at a
// time.
// A Lock belongs to the job that it was taken for (LockOptions::job, Job::Scope), on whatever thread it is. Without one
// it stays, when it is moved to another thread, the entry of the thread it was granted to: that one may re-enter it,
// the thread that has it now may not; and when deadlocks are looked for, a Lock that was moved is nobody's until a
// member of it is used, and from then on that of the thread that used it.
// A Lock that was moved from, or made without a grant, holds nothing: what may throw throws misuse; it is not valid(),
// lost() and asked() are stopped, name and owner are empty, token and remaining are 0, loss() and wanted() are empty.
// One that was released or detached is not valid() either, and check, extend, ensure, update_metadata, fence,
// with_fence and fence_sql throw lost.
// Owns: the grant. It may outlive its Engine; renewal goes on until the last Lock is gone.
// Time: trust runs on CLOCK_BOOTTIME from before the request was sent; no wall clock is read.
class [[nodiscard]] DLOCK_EXPORT Lock {
  struct Handle;

 public:
  Lock() noexcept = default;                               // holds nothing: to be moved into
  explicit Lock(std::shared_ptr<Handle> handle) noexcept;  // the engine's
  Lock(Lock&&) noexcept;
  Lock& operator=(Lock&&) noexcept;  // releases what it held, like the destructor
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // Releases. Never throws; takes at most timeouts.release, then leaves the rest to the engine or to the lease.
  // Does nothing in a process made by fork().
  ~Lock();

  // As the destructor, but tells. A second call answers what the first one did, and after detach() it is `unconfirmed`.
  Released release();

  // Makes an exclusive lock a shared one (Mode::shared), without a moment in which somebody else could have it
  // exclusively, and the only shared one exclusive. False: others share it, and it is held as before; to wait for them
  // here is not possible, since two who did so would wait for each other. It is another grant then, with an owner, a
  // token, lost() and asked() of its own, and what was learned from the one before is over. No other thread may use the
  // Lock meanwhile. Throws misuse for a lock of another mode, of a node, or entered more than once; lost; and where
  // nobody answered, after which it is lost: one that was to be made shared whatever it was that went wrong, since it
  // is trusted as an exclusive one no more from the call on.
  void downgrade();
  bool try_upgrade();

  // Lets go of the lease, with all entries of its thread, without releasing it: nobody renews it any more, and it ends
  // by its time unless it is adopted (Engine::adopt) or renewed (Engine::renew). For grants that outlive the process.
  // It is no job's from then on: where it was one's, its other threads that are inside have lost it, and its row is
  // told so, which takes at most timeouts.release (all of it in a transaction that has fenced the lock, and then for
  // nothing).
  dlock::Grant detach();

  // What names the lease to others: its owner, and the token of its row, which is larger than token() where the row
  // keeps tokens for this process (Holder::passed_on). Whoever adopts it takes it away from this Lock.
  dlock::Grant grant() const;

  const std::string& name() const noexcept;
  Token token() const noexcept;
  // 32 hexadecimal digits, random. They stand in the row of this grant alone, since a lock that was named to others is
  // not passed on in memory (EngineOptions::hand_overs.local); of one that was, before anybody asked, they are zeros.
  const std::string& owner() const noexcept;

  // Set when the lease is lost, by a thread of the engine, at the latest when trust ends; also when Engine::release_all
  // has released it, and then loss() is empty. Callbacks registered on it run on a thread of their own: one that blocks
  // delays others of the same lock, and nothing else.
  std::stop_token lost() const noexcept;

  // Whether somebody else waits in line for the lock, since when, and in which mode; empty: nobody does, as far as it
  // is known. A hint for work that can stop between two items, never more: it says nothing about the lease, and
  // nothing has to be done about it. An exclusive holder for which only readers wait (Mode::shared) may downgrade()
  // in place of releasing.
  // A waiter of the same engine counts at once, until it stops waiting; one that has a row, until the next renewal.
  // Those of other engines and processes are told by the renewal, without a statement of its own: one that has waited
  // for a second, or has a ticket (Fairness::fifo), a lock or a job, counts from the next renewal on, and until the
  // first one after it has given up. One that died is counted until its row is over (a minute; EngineOptions::ticket
  // for one with a ticket, a lock or a job). A lease that is not renewed (LockOptions::renew, or shorter than 300 ms)
  // hears of them at extend() alone. Not seen: Engine::wait_free, and Engine::try_lock_in without holding a lock; of a
  // line of another engine in which nobody has a ticket, a lock or a job, anybody but its first.
  // `waited` goes back to when the longest waiter called: by the database's clock as the last renewal told it, and by
  // CLOCK_BOOTTIME since its answer, so that it is too little by at most that answer's way; of a waiter of the same
  // engine by CLOCK_BOOTTIME alone. `mode` is as of the last renewal, too, and wider at once for who joins in the
  // same engine.
  // All entries of a thread (Reentrance) share it. Empty when the Lock is not valid().
  std::optional<Wanted> wanted() const noexcept;

  // Set when somebody is first seen to wait, as wanted() says, by a thread of the engine; once, and for good: who asked
  // may have given up since. Callbacks run as those of lost() do. A Lock that was released, detached or lost is not
  // asked any more, but for a callback that is on its way; Engine::adopt makes a new one, which is asked anew.
  std::stop_token asked() const noexcept;

  // Whether the lease can be trusted, computed from the clock here and now: right at once after a pause.
  bool valid() const noexcept;

  // As valid(): `if (lock)` asks whether it is held, and may be trusted, now.
  explicit operator bool() const noexcept { return valid(); }

  // How much longer the lease can be trusted without another renewal; zero when it is lost.
  Duration remaining() const noexcept;

  // Throws Error{lost} unless valid().
  void check() const;

  // Why it was lost; empty while it is not.
  std::optional<Loss> loss() const noexcept;

  // Makes the lease last `lease` from now, by the database's clock, and renews it by that length from here on, if it is
  // renewed and long enough for that (300 ms).
  // A shorter lease is believed before it is asked for: trust ends that soon, whatever becomes of the request, until an
  // extension is confirmed. For others the lock does not open before the end that it was given earlier; release() opens
  // it. A longer lease counts once it is confirmed.
  // Misuse where it does not go with what was chosen for the grant: later than LockOptions::max_hold allows, or not
  // longer than LockOptions::renew_every or EngineOptions::margin need.
  // `at_least`: for so long from now, by the database's clock, the lock stays closed to others, even if it is released,
  // as by LockOptions::at_least; 0 = no longer than it does anyway. It never makes earlier when the lock reopens. After
  // an extension that failed by unavailable, timeout or in_doubt it may stay closed so long, or not.
  // Fails: lost, unavailable, timeout, in_doubt, misuse.
  void extend(SaturatingDuration lease, SaturatingDuration at_least = {});

  // Before a piece of work that takes `left`: extends the lease only if it can be trusted for less than that, as
  // extend() does by the length it has, or by what the work needs if that is longer. Where enough is left it costs
  // nothing. What is trusted then is `left` less the time that the request takes.
  // Fails: as extend().
  void ensure(SaturatingDuration left);

  // Writes other metadata into the lock's row, for all to see (Engine::inspect, list): at most 4096 bytes of UTF-8, as
  // LockOptions::metadata. With Keep::for_next they are kept in the row as well, in Holder::kept, whatever becomes of
  // this grant: its release, the end of its lease, a release by force. Whoever holds the lock next finds them there
  // and, as long as it holds it, nobody else changes them: a place for how far the work is. Only this writes
  // Holder::kept; empty metadata with Keep::for_next clears it, and as long as it is not empty the reaper leaves the
  // row alone.
  // All entries of a thread (Reentrance) share one row, and so its metadata: the last one to write counts. Those of a
  // node have metadata each, and what was written last is shown. The lease is not renewed.
  // Fails: lost, unavailable, timeout, in_doubt (it may be written or not), misuse.
  void update_metadata(std::string_view metadata, Keep keep = Keep::until_free);

  // Proves, inside the caller's open transaction on the same database, that the lease is still this grant's, by writing
  // its row: nobody else can be granted the lock until the transaction ends, and nobody was before. What is committed
  // in it was written under this lock. Make it the transaction's first statement: at REPEATABLE READ and SERIALIZABLE
  // (and in a deferred transaction on SQLite) a grant or a renewal since its snapshot ends it with conflict. The
  // lease is renewed on the way, for others; this process counts on that only after with_fence. Until the transaction
  // ends the renewer cannot renew the lease. On PostgreSQL the server ends the transaction when its client is silent
  // for longer than the lease (EngineOptions::bound_idle); elsewhere a transaction that hangs keeps the lock. The
  // connection keeps its settings; it waits for the database as its owner has set it up to.
  // A fence is a part of the transaction: who goes back to a savepoint from before it has undone it, and the row is not
  // locked any more either (but on SQLite, and on MySQL behind an earlier statement). In nested blocks (an ORM's, which
  // are savepoints) fence in the outermost.
  // Fails: lost (so does a Lock that was released or detached), conflict (roll back and run the transaction again),
  // misuse (no transaction is open, a failed one, a result left to read; or the connection leads to another database
  // than the lock table's, and both are named), unavailable, schema, permission. Do not commit then: see
  // FenceOptions::doom.
  void fence(TransactionRef transaction, const FenceOptions& options = {});

  // Begins a transaction on the connection, fences it, runs the work, and commits; rolls back if the work throws.
  // Repeats all of it on conflict, so the work must be able to run again; to have it repeated after a serialization
  // failure of its own, it throws Error{conflict}. On MariaDB too the server ends the transaction when its client is
  // silent for longer than the lease. Other locks may be fenced in the work; if one of those fails nothing is stored.
  // The work must not end the transaction, nor may a statement in it (DDL on MySQL and MariaDB commits by itself):
  // that is misuse, told when the work is over. Nothing is run again then; what the work has committed is stored, and
  // what it wrote after that without committing is not. Nor is it run again where it has written a table that knows no
  // transactions (MyISAM), and asks to be (which MariaDB does not tell of a session that has made temporary tables).
  // Fails: as fence(), but misuse if a transaction is open already; in_doubt if the connection broke during the commit,
  // or if the commit's wait for a synchronous standby was cancelled (PostgreSQL says so by a warning, which cannot be
  // seen through a SqlRunner, nor on a connection with a notice receiver of its own); and with whatever the work
  // throws.
  void with_fence(TransactionRef transaction, const std::function<void()>& work, const FenceOptions& options = {});

  // The fence as one statement of literal SQL, for transactions of other drivers or languages. It must be the first
  // statement of the transaction, and the lease is lost unless it answers one row with the number 1 (PostgreSQL, where
  // it fails otherwise) or changes one row (elsewhere). It renews by the lease as it is now: ask anew after extend().
  // Fails: lost.
  std::string fence_sql() const;

 private:
  friend class Engine;
  friend class LockSet;
  friend class ThreadLocks;
  Handle* used() const noexcept;  // null: moved from
  void check_not_moved_from() const;
  Handle& here() const;
  Handle& kept() const;  // neither released nor detached
  std::shared_ptr<Handle> grant_;
};

}  // namespace v0
}  // namespace dlock
