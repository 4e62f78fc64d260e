// How a name is locked in a caller's own transaction, and waited for without holding anything up.
#pragma once

#include "engine/attempts.hpp"
#include "engine/context.hpp"
#include "engine/lease/lingering.hpp"
#include "engine/patience.hpp"
#include "engine/session_id.hpp"
#include "engine/wait/release_observer.hpp"
#include "store/caller_transaction.hpp"

#include <dlock/grant.hpp>
#include <dlock/job.hpp>
#include <dlock/options.hpp>
#include <dlock/transaction.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace dlock::engine {

// A lock of a transaction. Empty: busy, or out of patience.
struct LockInTransaction : std::optional<Grant> {
  LockInTransaction(std::optional<Grant> grant = {}, bool locked = false) noexcept
      : std::optional<Grant>(std::move(grant)), row_locked(locked) {}
  bool row_locked;  // as in Acquired
};

// Threads: one. Must not outlive what it is given.
class TransactionAcquire {
  template <class Call>
  auto ask(Call question) {
    return context_.ask_unless_locked(name_, answered_by(), std::move(question));
  }

 public:
  // With `lease` a lease begins with the commit; without, the lock lasts as long as the transaction, and has no owner.
  TransactionAcquire(Context& context, Attempts& attempts, const Name& name, const Deadline& until,
                     const LockOptions* lease);

  // Once.
  LockInTransaction run(Lingering& lingering, const TransactionRef& transaction);

 private:
  store::RowAvailability look();
  std::optional<Grant> take(const store::RowAvailability& row);
  void check();
  void check_again();
  bool tries_once();
  LockInTransaction in_vain();
  LockInTransaction out_of_time(const store::RowAvailability& row);
  void observe();
  // The server may end the transaction for its silence, which is as long as this waits.
  void keep_alive();
  void rest(Duration opens_in);  // as ReleaseObserver's
  void confirm();
  Deadline answered_by() const;

  Context& context_;
  Attempts& attempts_;
  const Name& name_;
  const Patience patience_;
  const LockOptions* const lease_;
  const std::string owner_;
  const Job job_;        // on whose behalf, if it has a name
  const JobRef thread_;  // else
  const SessionId actor_;
  store::TakeRequest ask_;
  std::unique_ptr<store::CallerTransaction> caller_{};
  std::optional<ReleaseObserver> observer_{};
  Instant looked_at_{};
  Instant checked_at_{};    // what the caller's session was asked
  Instant speaks_at_{};     // when its connection is to be used again
  bool caught_up_ = false;  // with a cluster, once
};

}  // namespace dlock::engine
