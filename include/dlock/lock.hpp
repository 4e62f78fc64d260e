// This file knows what can be done with a granted lease.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/export.hpp>
#include <dlock/token.hpp>
#include <dlock/transaction.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

class Engine;

// Why a lease was lost.
enum class Loss {
  refused,      // the database said that the lease is another owner's, or nobody's
  unconfirmed,  // trust ran out before a renewal was confirmed
  forced,       // somebody released it by force
  max_hold,     // it was held as long as LockOptions::max_hold allows
};

// What became of a release.
enum class Released {
  freed,        // the row is free
  still_held,   // this entry has left, another one holds on (Reentrance)
  was_lost,     // the lease had been lost before; nobody else's was touched
  unconfirmed,  // no answer in time; the engine tries on, and at the latest the lease ends by itself
};

DLOCK_EXPORT std::string_view to_string(Loss loss) noexcept;
DLOCK_EXPORT std::string_view to_string(Released released) noexcept;

// How a transaction is fenced.
struct FenceOptions {
  // Whether a refused fence also makes the transaction impossible to commit, so that a swallowed exception stores
  // nothing. PostgreSQL aborts it by itself; on MySQL and MariaDB the caller's connection is killed; on SQLite a commit
  // hook refuses until the rollback, which takes it away again (and with it other hooks of that connection).
  bool doom = true;
  unsigned attempts = 10;  // with_fence: runs of the transaction at most, while each ends in conflict
};

// One granted lease, or a further entry into one (Reentrance): then owner, token, trust and loss are those of the lease,
// shared by all of its entries.
// Threads: lost, valid, remaining, check, loss, name, token and owner from any; the rest one thread at a time.
// A Lock moved to another thread stays the entry of the thread it was granted to: that one may re-enter it, the thread
// that has it now may not.
// Owns: the grant. It may outlive its Engine; renewal goes on until the last Lock is gone.
// Time: trust runs on CLOCK_BOOTTIME from before the request was sent; no wall clock is read.
class [[nodiscard]] DLOCK_EXPORT Lock {
 public:
  Lock(Lock&&) noexcept;
  Lock& operator=(Lock&&) noexcept;  // releases what it held, like the destructor
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // Releases. Never throws; takes at most release_timeout, then leaves the rest to the engine or to the lease.
  // Does nothing in a process made by fork().
  ~Lock();

  // As the destructor, but tells. A second call answers what the first one did.
  Released release();

  // Lets go of the lease, with all entries of its thread, without releasing it: nobody renews it any more, and it ends by its time unless it is
  // adopted (Engine::adopt) or renewed by its token. For grants that outlive the process.
  Token detach() noexcept;

  const std::string& name() const noexcept;
  Token token() const noexcept;
  const std::string& owner() const noexcept;  // 32 hexadecimal digits, random, of this grant alone

  // Set when the lease is lost, by a thread of the engine, at the latest when trust ends. Callbacks registered on it
  // run on a thread of their own; one that blocks delays those of other locks, never a renewal.
  std::stop_token lost() const noexcept;

  // Whether the lease can be trusted, computed from the clock here and now: right at once after a pause.
  bool valid() const noexcept;

  // How much longer the lease can be trusted without another renewal; zero when it is lost.
  Duration remaining() const noexcept;

  // Throws Error{lost} unless valid().
  void check() const;

  // Why it was lost; empty while it is not.
  std::optional<Loss> loss() const noexcept;

  // Makes the lease end `lease` from now, by the database's clock, and renews it by that length from here on.
  // Misuse where that is later than LockOptions::max_hold allows.
  // Fails: lost, unavailable, timeout, in_doubt, misuse.
  void extend(Duration lease);

  // Proves, inside the caller's open transaction on the same database, that the lease is still this grant's, by writing
  // its row: nobody else can be granted the lock until the transaction ends, and nobody was before. What is committed in
  // it was written under this lock. Make it the transaction's first statement: at REPEATABLE READ and SERIALIZABLE (and
  // in a deferred transaction on SQLite) a renewal since the transaction's snapshot ends it with conflict.
  // The lease is renewed on the way, for others; this process counts on that only after with_fence. Until the
  // transaction ends the keeper cannot renew the lease. On PostgreSQL the server ends the transaction when its client is
  // silent for longer than the lease (EngineOptions::bound_idle); elsewhere a transaction that hangs keeps the lock.
  // The connection keeps its settings; it waits for the database as its owner has set it up to.
  // Fails: lost, conflict (roll back and run the transaction again), misuse (no transaction is open, a failed one, a
  // result left to read), unavailable, schema, permission. Do not commit then: see FenceOptions::doom.
  void fence(TransactionRef transaction, const FenceOptions& options = {});

  // Begins a transaction on the connection, fences it, runs the work, and commits; rolls back if the work throws.
  // Repeats all of it on conflict, so the work must be able to run again; to have it repeated after a serialization
  // failure of its own, it throws Error{conflict}. On MariaDB too the server ends the transaction when its client is
  // silent for longer than the lease.
  // Fails: as fence(); in_doubt if the connection broke during the commit; and with whatever the work throws.
  void with_fence(TransactionRef transaction, const std::function<void()>& work, const FenceOptions& options = {});

  // The fence as one statement of literal SQL, for transactions of other drivers or languages. It must be the first
  // statement of the transaction, and the lease is lost unless it answers one row with the number 1 (PostgreSQL, where
  // it fails otherwise) or changes one row (elsewhere).
  std::string fence_sql() const;

 private:
  friend class Engine;
  struct Grant;
  explicit Lock(std::shared_ptr<Grant> grant) noexcept;
  Grant& here() const;
  std::shared_ptr<Grant> grant_;
};

}  // namespace v0
}  // namespace dlock
