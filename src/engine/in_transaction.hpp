// What is done in a caller's transaction: a lock for as long as it lasts, and the proof that a lease is still held.
#pragma once

#include "engine/attempts.hpp"
#include "engine/context.hpp"
#include "engine/lease/lingering.hpp"
#include "engine/transaction_acquire.hpp"
#include "store/caller_transaction.hpp"

#include <dlock/transaction.hpp>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace dlock::engine {

// Threads: any, each with a transaction of its own.
class InTransaction {
 public:
  InTransaction(Context& context, Lingering& lingering, Attempts& attempts) noexcept
      : context_(context), lingering_(lingering), attempts_(attempts) {}

  // With `lease` a lease begins with its commit; without, the lock lasts as long as it does, and has no owner.
  LockInTransaction try_lock_in(const TransactionRef& transaction, const Name& name, const Deadline& until,
                                const LockOptions* lease);
  // Whatever it throws keeps a transaction from being committed that with_fence has begun around it.
  static void hear(const TransactionRef& transaction, const FenceOptions& options, const std::function<void()>& call);
  // Each of them, in their order. `gone`: the entries that ask have left, though others may hold on; they are refused.
  void fence(std::span<const std::shared_ptr<Lease>> all, const TransactionRef& transaction,
             const FenceOptions& options, bool gone);
  // Keeps the grants itself: the work may let go of the Lock that asks.
  void with_fence(std::vector<std::shared_ptr<Lease>> all, const TransactionRef& transaction,
                  const std::function<void()>& work, const FenceOptions& options);

 private:
  void put_rows_right_before();
  bool is_there(const store::LeaseKey& key);
  void prove(store::CallerTransaction& caller, const std::shared_ptr<Lease>& held, const FenceOptions& options,
             bool gone);

  Context& context_;
  Lingering& lingering_;
  Attempts& attempts_;
};

}  // namespace dlock::engine
