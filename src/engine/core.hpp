// The engine as a whole: what may be asked of it, and which of its parts answers.
#pragma once

#include "engine/acquire_all.hpp"
#include "engine/acquiring.hpp"
#include "engine/attempts.hpp"
#include "engine/context.hpp"
#include "engine/in_transaction.hpp"
#include "engine/inspector.hpp"
#include "engine/lease/adopting.hpp"
#include "engine/lease/history_probe.hpp"
#include "engine/lease/late_attempts.hpp"
#include "engine/lease/lease_changes.hpp"
#include "engine/lease/lingering.hpp"
#include "engine/lease/reentry.hpp"
#include "engine/lease/releasing.hpp"
#include "engine/patience.hpp"
#include "engine/removing.hpp"
#include "engine/session_id.hpp"
#include "engine/wait/handing_over.hpp"

#include <dlock/engine.hpp>
#include <dlock/options.hpp>
#include <dlock/waiter.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock {
inline namespace v0 {

// What Engines and Locks share: each call goes to the part whose matter it is. Threads: any. Owns: the parts, and the
// context that they share. Fails: Error, as include/dlock/engine.hpp says.
class Core : public std::enable_shared_from_this<Core> {
 public:
  using Patience = engine::Patience;
  using LeasePtr = std::shared_ptr<engine::Lease>;

  // `options` are complete and valid. `engine_id`: the first 16 digits of the actor of all its grants.
  Core(std::shared_ptr<store::LockTable> table, EngineOptions options, std::string engine_id = engine::random_id());
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  // One time for the end of all, where somebody has begun to wait for it before.
  void end_by(Instant until) noexcept { context_->end_by(until); }

  const EngineOptions& options() const noexcept { return context_->options; }
  // Whose rows a job may have to put right.
  const std::shared_ptr<engine::Context>& context() const noexcept { return context_; }
  // For an acquire that goes on without a thread: keeps all of this alive.
  std::shared_ptr<engine::Acquirer> acquirer() { return {shared_from_this(), &acquirer_}; }

  // Throws misuse where an acquire with them would.
  void check(const LockOptions& options) const { static_cast<void>(context_->policy.terms_of(options)); }
  engine::Acquired acquire(const Name& name, const LockOptions& options, const Patience& patience) {
    return acquirer_.acquire(name, options, patience);
  }
  engine::AcquiredAll acquire_all(std::span<const Name> names, const LockOptions& options, const Patience& patience);
  // For who has waited in vain behind others in line: whether nobody was seen who holds what they wait for.
  bool nobody_seen(const std::string& name) const { return context_->queues->blocked(name); }
  // A wait is over that did not get to the database.
  void tell_timed_out(const Name& name, Instant begun, const LockOptions& options) {
    context_->tell_end(name, begun, true, engine::Context::said_by(options));
  }
  int hold_count(const Name& name) { return reentry_.hold_count(name); }
  bool wait_free(const Name& name, const Patience& patience);

  Released release(const LeasePtr& held, Duration timeout) { return releaser_.release(held, timeout); }
  std::optional<Released> leave(engine::ReleaseRequest& request) { return releaser_.leave(request); }
  Released free(engine::ReleaseRequest& request, Duration timeout) { return releaser_.free(request, timeout); }
  std::vector<engine::Releaser::Given> free_together(std::span<const engine::ReleaseRequest> all, Duration timeout) {
    return releaser_.free_together(all, timeout);
  }
  std::vector<Released> release_each(std::span<const LeasePtr> all, Duration timeout) {
    return releaser_.release_each(all, timeout);
  }
  // All that is held now, whoever has it; takes at most `timeout`.
  Engine::ReleasedAll release_all(Duration timeout);

  // `at_least`: for so long from now nobody else is to have it, even if it is released.
  void extend(const LeasePtr& held, Duration lease, Duration at_least = {}) {
    changes_.extend(held, {lease, at_least}, context_->soon());
  }
  void ensure(const LeasePtr& held, Duration left) { changes_.ensure(held, left); }
  LeasePtr downgrade(const LeasePtr& held) { return changes_.downgrade(held); }
  LeasePtr upgrade(const LeasePtr& held) { return changes_.upgrade(held); }
  void update_metadata(const LeasePtr& held, std::string_view metadata, Keep keep) {
    changes_.update_metadata(held, metadata, keep);
  }
  // Who waits for the name, in this process and as of the last renewal in others.
  std::optional<Wanted> wanted(const engine::Lease& held) const;
  std::stop_token asked(const LeasePtr& held);

  LeasePtr adopt(const Name& name, const Grant& grant, const LockOptions& options) {
    return adopter_.adopt(name, grant, options);
  }
  bool renew(const Name& name, const Grant& grant, std::optional<Duration> lease) {
    return adopter_.renew(name, grant, lease);
  }
  void detach(const LeasePtr& held) { adopter_.detach(held); }

  // Locks and fences in a caller's transaction.
  engine::InTransaction& in_transaction() noexcept { return in_transaction_; }
  std::string fence_sql(const engine::Lease& held) const { return context_->table->fence_sql(held.pinned_key()); }

  std::optional<Holder> inspect(const Name& name) { return inspector_.inspect(name); }
  std::optional<Holder> glance(const Name& name) { return inspector_.glance(name); }
  std::vector<Holder> list(const std::string& glob) { return inspector_.list(glob); }
  std::vector<Waiter> waiters(const std::string& glob) { return inspector_.waiters(glob); }
  std::vector<Sharer> sharers(const std::string& glob) { return inspector_.sharers(glob); }
  std::vector<HistoryEntry> history(const Name& name, std::size_t limit) { return inspector_.history(name, limit); }
  Stats stats() const { return inspector_.stats(); }
  std::unique_ptr<engine::EventQueue::Registration> observe(std::function<void(const Event&)> observer) {
    return context_->events->observe(std::move(observer));
  }

  bool force_release(const Name& name, Token seen, std::string_view reason = {}) {
    return remover_.force_release(name, seen, reason);
  }
  Removal remove(const Name& name, Holder* row, const std::stop_token& stop) {
    return remover_.remove(name, row, stop);
  }
  Engine::Reaped reap(std::size_t batch) { return remover_.reap(batch); }
  Engine::Reaped reap_all(const Reaping& reaping, const std::stop_token& stop) {
    return remover_.reap_all(reaping, stop);
  }

 private:
  const std::shared_ptr<engine::Context> context_;
  engine::LateAttempts late_attempts_{*context_};
  engine::HistoryProbe history_{*context_};
  engine::Lingering lingering_{*context_, history_, late_attempts_};
  engine::HandOver hand_over_{*context_, history_, late_attempts_};
  engine::Releaser releaser_{*context_, lingering_, late_attempts_, hand_over_};
  engine::LeaseChanges changes_{*context_};
  engine::Reentry reentry_{*context_, changes_, releaser_};
  engine::Attempts attempts_{*context_, lingering_, late_attempts_};
  engine::Acquirer acquirer_{{*context_, lingering_, late_attempts_, releaser_, reentry_, attempts_}};
  engine::Inspector inspector_{*context_};
  engine::Adopter adopter_{*context_, inspector_, late_attempts_};
  engine::InTransaction in_transaction_{*context_, lingering_, attempts_};
  engine::Remover remover_{*context_, lingering_, inspector_};
};

}  // namespace v0
}  // namespace dlock
