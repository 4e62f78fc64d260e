// This file knows what each call on a Lock means to the engine.
#include "api/lock_handle.hpp"
#include "api/open.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>
#include <dlock/lock.hpp>

#include <fmt/format.h>

namespace dlock {
inline namespace v0 {

Lock::Lock(std::shared_ptr<Handle> grant) noexcept : grant_(std::move(grant)) {}
Lock::Lock(Lock&&) noexcept = default;

Lock& Lock::operator=(Lock&& other) noexcept {
  Lock old(std::move(*this));
  grant_ = std::move(other.grant_);
  return *this;
}

Lock::~Lock() {
  if (!grant_) return;
  if (grant_->birthplace.forked()) {
    // The parent's grant, connections and threads: this process must not even destroy its copies of them.
    static_cast<void>(new (std::nothrow) std::shared_ptr<Handle>(std::move(grant_)));
    return;
  }
  if (grant_->released()) return;
  try {
    grant_->core->release(grant_->held, grant_->core->options().release_timeout);
  } catch (...) {  // out of memory: the lease ends by itself
  }
}

Released Lock::release() {
  static_cast<void>(here());
  if (!grant_->released())
    grant_->is_released(grant_->core->release(grant_->held, grant_->core->options().request_timeout));
  return grant_->what_became();
}

Grant Lock::detach() {
  auto named = grant();
  if (!grant_->released() && !grant_->birthplace.forked()) {
    grant_->core->detach(grant_->held);
    grant_->is_released(Released::unconfirmed);
  }
  return named;
}

Grant Lock::grant() const { return {token(), owner()}; }

const std::string& Lock::name() const noexcept { return grant_->held->name(); }
Token Lock::token() const noexcept { return grant_->held->token(); }
const std::string& Lock::owner() const noexcept { return grant_->held->owner(); }
std::stop_token Lock::lost() const noexcept { return grant_->held->lost(); }
bool Lock::valid() const noexcept { return grant_->held->valid(BootClock::now()); }
Duration Lock::remaining() const noexcept { return grant_->held->remaining(BootClock::now()); }

void Lock::check() const {
  if (valid()) return;
  const auto why = loss();
  throw Error(Fault::lost, fmt::format("the lock {} (token {}) is {}", in_quotes(name()), number(token()),
                                       why ? fmt::format("lost: {}", to_string(*why)) : "no longer held"));
}

std::optional<Loss> Lock::loss() const noexcept {
  // Trust may have ended just now, before any thread of the engine could say so.
  if (valid()) return std::nullopt;
  return grant_->held->loss();
}

Lock::Handle& Lock::here() const {
  if (grant_->birthplace.forked()) throw Error(Fault::misuse, "the lock belongs to the parent of this process");
  return *grant_;
}

void Lock::fence(TransactionRef transaction, const FenceOptions& options) {
  auto& grant = here();
  grant.core->fence(grant.held, transaction, options, grant.released());
}

void Lock::with_fence(TransactionRef transaction, const std::function<void()>& work, const FenceOptions& options) {
  auto& grant = here();
  check_kept();
  grant.core->with_fence(grant.held, transaction, work, options);
}

std::string Lock::fence_sql() const {
  auto& grant = here();
  check_kept();
  return grant.core->fence_sql(*grant.held);
}

// Others may still hold on to what this Lock has let go of.
void Lock::check_kept() const {
  if (grant_->released())
    throw Error(Fault::lost, fmt::format("the lock {} (token {}) is no longer held", in_quotes(name()), number(token())));
  check();
}

void Lock::extend(Duration lease) {
  static_cast<void>(here());
  LockOptions options;
  options.lease = lease;
  api::check(options);
  if (grant_->held->ended()) check();
  grant_->core->extend(grant_->held, lease);
}

}  // namespace v0
}  // namespace dlock
