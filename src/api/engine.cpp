// What each call on an Engine means to the core, what one that was granted nothing is told, and how an engine ends.
// Arguments are checked here, before any SQL; most of their bounds are in open.cpp.
#include "api/async.hpp"
#include "api/calls.hpp"
#include "api/lock_handle.hpp"
#include "api/lock_set_handle.hpp"
#include "api/open.hpp"
#include "api/subscription.hpp"
#include "engine/core.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/process.hpp"

#include <dlock/engine.hpp>
#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

Instant deadline_of(Duration wait) {
  if (wait < Duration{}) throw Error(Fault::misuse, fmt::format("the wait {} us is negative", wait.count()));
  return later(BootClock::now(), wait);
}

// In order, and none of them twice.
std::vector<Name> checked(std::vector<std::string> names) {
  if (names.empty()) throw Error(Fault::misuse, "there is no name among the names to be locked");
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return {names.begin(), names.end()};
}

constexpr std::size_t most_entries = 1'000'000'000;

Refused refused_after(Duration wait) { return wait > Duration{} ? Refused::timed_out : Refused::busy; }

}  // namespace

struct Engine::Handle {
  std::shared_ptr<Core> core;
  std::shared_ptr<api::Calls> calls = std::make_shared<api::Calls>();
  ForkGuard fork_guard{};
  std::shared_ptr<Async> async = std::make_shared<Async>(core);
};

// One call on an engine. What it uses lives until it ends, whatever becomes of the Engine meanwhile.
class Engine::Call {
 public:
  explicit Call(const Engine& engine) : call_(engine.here().calls), core_(engine.handle_->core) {}

  Core* operator->() const noexcept { return core_.get(); }

  // Until there is a grant, or no patience left; `stop` may be none.
  engine::Acquired acquire(const Name& name, const LockOptions& options, Instant deadline, std::stop_token stop) {
    auto held = core_->acquire(name, options, {deadline, call_.stopped_by(std::move(stop)), true});
    if (!held) call_.check();
    return held;
  }
  std::optional<Grant> lock_in(const TransactionRef& transaction, const Name& name, Duration wait,
                               const LockOptions* lease, Refusal* refusal) {
    try {
      auto grant =
          core_->in_transaction().try_lock_in(transaction, name, {deadline_of(wait), call_.stopped_by({})}, lease);
      if (grant) return grant;
      call_.check();
      tell(refusal, name, refused_after(wait), grant.row_locked);
      return std::nullopt;
    } catch (const Error& error) {
      if (error.fault() != Fault::conflict) call_.check();
      throw;
    }
  }
  std::stop_token stopped_by(std::stop_token caller) { return call_.stopped_by(std::move(caller)); }
  void check() const { call_.check(); }

  std::shared_ptr<Lock::Handle> grant(std::shared_ptr<engine::Lease> held) const {
    auto made = std::make_shared<Lock::Handle>(core_, std::move(held));
    made->used();
    return made;
  }
  std::optional<Lock> lock(std::shared_ptr<engine::Lease> held) const {
    if (!held) return std::nullopt;
    // Made where it is to be: a Lock that is moved changes hands.
    return std::optional<Lock>(std::in_place, grant(std::move(held)));
  }
  // All of the names; `wait`: none for one attempt.
  struct WaitTerms {
    std::optional<Duration> length{};
    std::stop_token stop{};
  };
  std::unique_ptr<LockSet::Handle> lock_all(std::span<const Name> names, const LockOptions& options,
                                            const WaitTerms& wait, Refusal* refusal) {
    const auto& limits = core_->options().timeouts;
    const auto deadline = wait.length ? deadline_of(*wait.length) : later(BootClock::now(), limits.request);
    const bool waits = wait.length.has_value();
    const auto stop = waits ? call_.stopped_by(wait.stop) : std::stop_token{};
    auto handle = std::make_unique<LockSet::Handle>(core_, names.size());
    const auto all = core_->acquire_all(names, options, {deadline, stop, waits});
    if (!all.leases.empty()) {
      handle->take(all.leases);
      return handle;
    }
    if (waits) call_.check();
    const auto why = waits ? refused_after(*wait.length) : Refused::busy;
    tell(refusal, names[all.in_the_way], wait.stop.stop_requested() ? Refused::stopped : why, all.row_locked);
    return nullptr;
  }
  static std::optional<LockSet> set(std::unique_ptr<LockSet::Handle> handle) {
    if (!handle) return std::nullopt;
    return std::optional<LockSet>(std::in_place, std::move(handle));  // in its place, as a Lock
  }
  // Of a call that was granted nothing: why, and what the row says.
  void tell(Refusal* refusal, const Name& name, Refused why, bool row_locked) const {
    if (refusal == nullptr) return;
    *refusal = {why, {}};
    auto& holder = refusal->holder;
    if (why != Refused::stopped)
      if (auto row = core_->glance(name)) holder = std::move(*row);
    holder.name = name.text();
    if (!row_locked || why == Refused::stopped || (holder.state != State::free && holder.state != State::expired))
      return;
    holder.state = State::locked;
    if (why == Refused::busy) refusal->why = Refused::locked;
  }

 private:
  api::Call call_;
  const std::shared_ptr<Core>
      core_;  // gone when the call leaves: the engine's end is the core's, unless there are Locks
};

Engine::Engine(std::string_view url, EngineOptions options)
    : handle_(std::make_unique<Handle>(Handle{api::open(url, std::move(options))})) {}
Engine::Engine(std::unique_ptr<Handle> handle) noexcept : handle_(std::move(handle)) {}
void Engine::check(const LockOptions& options) const {
  api::check(options);
  here().core->check(options);
}
const std::string& Engine::label() const { return here().core->options().label; }
Engine Engine::same() const { return Engine(std::make_unique<Handle>(Handle{here().core})); }
Engine::Engine(Engine&&) noexcept = default;

Engine& Engine::operator=(Engine&& other) noexcept {
  if (this == &other) return *this;
  const Engine old(std::move(*this));  // ends as an engine does, also after fork()
  handle_ = std::move(other.handle_);
  return *this;
}

Engine::~Engine() {
  // After fork() the connections and threads are the parent's: not even their copies may be destroyed here.
  if (handle_ && handle_->fork_guard.forked()) static_cast<void>(handle_.release());
  if (!handle_) return;
  auto& core = handle_->core;
  const auto until = later(BootClock::now(), core->options().timeouts.request);
  handle_->calls->end(until);
  handle_->async->end(until);
  handle_->async.reset();
  if (core.use_count() == 1) core->end_by(until);
}

const Engine::Handle& Engine::here() const {
  if (!handle_) throw Error(Fault::misuse, "the engine was moved from: it has no database any more");
  if (handle_->fork_guard.forked())
    throw Error(Fault::misuse, "the engine belongs to the parent of this process; open one after fork()");
  return *handle_;
}

std::optional<Lock> Engine::try_lock(std::string_view name, const LockOptions& options, Refusal* refusal) {
  const Call call(*this);
  const Name checked(name);
  api::check(options);
  auto held = call->acquire(checked, options, {later(BootClock::now(), call->options().timeouts.request), {}, false});
  if (!held) call.tell(refusal, checked, Refused::busy, held.row_locked);
  return call.lock(std::move(held));
}

std::optional<Lock> Engine::try_lock_for(std::string_view name, SaturatingDuration wait, const LockOptions& options,
                                         std::stop_token stop, Refusal* refusal) {
  Call call(*this);
  const Name checked(name);
  api::check(options);
  if (planted("try_lock_for_deaf")) stop = {};
  auto held = call.acquire(checked, options, deadline_of(wait), stop);
  if (!held)
    call.tell(refusal, checked, stop.stop_requested() ? Refused::stopped : refused_after(wait), held.row_locked);
  return call.lock(std::move(held));
}

Lock Engine::lock(std::string_view name, const LockOptions& options) {
  Call call(*this);
  const Name checked(name);
  api::check(options);
  return Lock(call.grant(call.acquire(checked, options, Instant::max(), {})));
}

std::optional<Lock> Engine::lock(std::string_view name, const LockOptions& options, std::stop_token stop,
                                 Refusal* refusal) {
  return try_lock_for(name, Duration::max(), options, std::move(stop), refusal);
}

std::optional<Lock> Engine::lock(std::stop_token stop, std::string_view name, const LockOptions& options,
                                 Refusal* refusal) {
  return lock(name, options, std::move(stop), refusal);
}

std::optional<LockSet> Engine::try_lock_all(std::vector<std::string> names, const LockOptions& options,
                                            Refusal* refusal) {
  Call call(*this);
  const auto all = checked(std::move(names));
  api::check(options);
  return call.set(call.lock_all(all, options, {}, refusal));
}

std::optional<LockSet> Engine::try_lock_all_for(std::vector<std::string> names, SaturatingDuration wait,
                                                const LockOptions& options, std::stop_token stop, Refusal* refusal) {
  Call call(*this);
  const auto all = checked(std::move(names));
  api::check(options);
  return call.set(call.lock_all(all, options, {wait, std::move(stop)}, refusal));
}

LockSet Engine::lock_all(std::vector<std::string> names, const LockOptions& options) {
  Call call(*this);
  const auto all = checked(std::move(names));
  api::check(options);
  return LockSet(call.lock_all(all, options, {Duration::max()}, nullptr));
}

std::optional<LockSet> Engine::lock_all(std::vector<std::string> names, const LockOptions& options,
                                        std::stop_token stop, Refusal* refusal) {
  return try_lock_all_for(std::move(names), Duration::max(), options, std::move(stop), refusal);
}

void Engine::async_acquire(std::string_view name, std::optional<SaturatingDuration> wait, const LockOptions& options,
                           std::stop_token stop, LockHandler handler) {
  const Call call(*this);
  const Name checked(name);
  api::check(options);
  const auto deadline = wait ? deadline_of(*wait) : later(BootClock::now(), call->options().timeouts.request);
  const bool waits = wait && *wait > Duration{};
  handle_->async->acquire({checked, options, deadline, waits, std::move(stop)}, std::move(handler));
}

void Engine::async_try_lock(std::string_view name, const LockOptions& options, LockHandler handler) {
  async_acquire(name, std::nullopt, options, {}, std::move(handler));
}

void Engine::async_try_lock_for(std::string_view name, SaturatingDuration wait, const LockOptions& options,
                                LockHandler handler) {
  async_acquire(name, wait, options, {}, std::move(handler));
}

void Engine::async_try_lock_for(std::string_view name, SaturatingDuration wait, const LockOptions& options,
                                std::stop_token stop, LockHandler handler) {
  async_acquire(name, wait, options, std::move(stop), std::move(handler));
}

void Engine::async_lock(std::string_view name, const LockOptions& options, LockHandler handler) {
  async_acquire(name, Duration::max(), options, {}, std::move(handler));
}

void Engine::async_lock(std::string_view name, const LockOptions& options, std::stop_token stop, LockHandler handler) {
  async_acquire(name, Duration::max(), options, std::move(stop), std::move(handler));
}

void Engine::async_release(Lock lock, std::function<void(Released)> handler) {
  const Call call(*this);
  static_cast<void>(lock.here());
  handle_->async->release(lock.grant_, std::move(handler));  // where that throws, the Lock releases
}

std::optional<Token> Engine::try_lock_in(TransactionRef transaction, std::string_view name, SaturatingDuration wait) {
  return lock_in(transaction, name, wait, nullptr);
}

std::optional<Token> Engine::lock_in(const TransactionRef& transaction, std::string_view name, Duration wait,
                                     Refusal* refusal) {
  const auto grant = Call(*this).lock_in(transaction, Name(name), wait, nullptr, refusal);
  return grant ? std::optional(grant->token) : std::nullopt;
}

std::optional<Grant> Engine::try_lock_in(TransactionRef transaction, std::string_view name, SaturatingDuration wait,
                                         const LockOptions& lease, Refusal* refusal) {
  api::check(lease);
  return Call(*this).lock_in(transaction, Name(name), wait, &lease, refusal);
}

bool Engine::wait_free(std::string_view name, SaturatingDuration wait, std::stop_token stop) {
  Call call(*this);
  if (planted("wait_free_deaf")) stop = {};
  const bool free = call->wait_free(Name(name), {deadline_of(wait), call.stopped_by(std::move(stop)), true});
  if (!free) call.check();
  return free;
}

std::optional<Lock> Engine::adopt(std::string_view name, const Grant& grant, const LockOptions& options) {
  const Call call(*this);
  api::check(grant);
  api::check(options);
  return call.lock(call->adopt(Name(name), grant, options));
}

bool Engine::renew(std::string_view name, const Grant& grant, std::optional<SaturatingDuration> lease) {
  const Call call(*this);
  api::check(grant);
  if (lease) api::check_lease("the lease of renew()", *lease);
  return call->renew(Name(name), grant, lease);
}

Engine::ReleasedAll Engine::release_all() {
  const Call call(*this);
  return call->release_all(call->options().timeouts.release);
}

int Engine::hold_count(std::string_view name) const { return Call(*this)->hold_count(Name(name)); }

std::optional<Holder> Engine::inspect(std::string_view name) { return Call(*this)->inspect(Name(name)); }

std::vector<Holder> Engine::list(std::string_view glob) { return Call(*this)->list(std::string(glob)); }

std::vector<HistoryEntry> Engine::history(std::string_view name, std::size_t limit) {
  return Call(*this)->history(Name(name), std::min(limit, most_entries));
}

std::vector<Waiter> Engine::waiters(std::string_view glob) { return Call(*this)->waiters(std::string(glob)); }

std::vector<Sharer> Engine::sharers(std::string_view glob) { return Call(*this)->sharers(std::string(glob)); }

bool Engine::force_release(std::string_view name, Token seen, std::string_view reason) {
  const Call call(*this);
  const Name checked(name);
  api::check_reason("the reason", reason);
  return call->force_release(checked, seen, reason);
}

Engine::Reaped Engine::reap(std::size_t batch) {
  if (batch == 0) throw Error(Fault::misuse, "the batch 0 must be at least 1");
  return Call(*this)->reap(batch);
}

Engine::Reaped Engine::reap_all(const Reaping& reaping, std::stop_token stop) {
  Call call(*this);
  if (reaping.limit == 0) throw Error(Fault::misuse, "Reaping::limit 0 must be at least 1");
  auto reaped = call->reap_all(reaping, call.stopped_by(stop));
  if (!stop.stop_requested()) call.check();
  return reaped;
}

Removal Engine::remove(std::string_view name, Holder* row, std::stop_token stop) {
  Call call(*this);
  const auto removal = call->remove(Name(name), row, call.stopped_by(stop));
  if (removal == Removal::stopped && !stop.stop_requested()) call.check();
  return removal;
}

Stats Engine::stats() const {
  const Call call(*this);
  auto stats = call->stats();
  handle_->async->count(stats.waiting);
  return stats;
}

Subscription Engine::observe(std::function<void(const Event&)> observer) {
  const Call call(*this);
  if (!observer) throw Error(Fault::misuse, "the observer is empty: there is nothing to be called");
  return Subscription(std::make_unique<Subscription::Handle>(Subscription::Handle{call->observe(std::move(observer))}));
}

}  // namespace v0
}  // namespace dlock
