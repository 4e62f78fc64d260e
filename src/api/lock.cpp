// What each call on a Lock means to the engine; when its grant counts as another thread's; and what a Lock answers that
// was moved from, was released, or is a fork's.
#include "api/lock_handle.hpp"
#include "api/open.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>
#include <dlock/lock.hpp>

#include <fmt/format.h>

#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

// What a Lock that was moved from answers where it cannot throw.
const std::string nothing;
// The owner of a lock that was passed on: in its row is that of who has it now.
const std::string nobody(32, '0');

Error parents() { return {Fault::misuse, "the lock belongs to the parent of this process"}; }

std::stop_token stopped() noexcept {
  static const std::stop_source source = [] {
    std::stop_source made;
    made.request_stop();
    return made;
  }();
  return source.get_token();
}

}  // namespace

void Lock::Handle::moved() noexcept {
  if (fork_guard.forked()) return;
  if (const auto giver = held->moved()) giver->remember(core->context());
}

void Lock::Handle::key() noexcept {
  if (fork_guard.forked()) return;
  try {
    const auto& job = engine::job_of_this_thread();
    if (held->used_by(job)) job->add({core->context(), held});
  } catch (const std::exception&) {  // out of memory: it stays nobody's
  }
}

Lock::Lock(std::shared_ptr<Handle> handle) noexcept : grant_(std::move(handle)) {}

Lock::Lock(Lock&& other) noexcept : grant_(std::move(other.grant_)) {
  if (grant_) grant_->moved();
}

Lock& Lock::operator=(Lock&& other) noexcept {
  if (this == &other) return *this;
  const Lock old(std::exchange(grant_, std::move(other.grant_)));  // ends as a Lock does
  if (grant_) grant_->moved();
  return *this;
}

Lock::~Lock() {
  if (!grant_) return;
  if (grant_->fork_guard.forked()) {
    // The parent's grant, connections and threads: this process must not even destroy its copies of them.
    static_cast<void>(new (std::nothrow) std::shared_ptr<Handle>(std::move(grant_)));
    return;
  }
  if (grant_->released()) return;
  try {
    grant_->core->release(grant_->held, grant_->core->options().timeouts.release);
  } catch (...) {  // out of memory: the lease ends by itself
  }
}

Released Lock::release() {
  static_cast<void>(here());
  if (!grant_->released())
    grant_->is_released(grant_->core->release(grant_->held, grant_->core->options().timeouts.release));
  return grant_->what_became();
}

Grant Lock::detach() {
  auto named = grant();
  if (!grant_->released() && !grant_->fork_guard.forked()) {
    grant_->core->detach(grant_->held);
    grant_->is_released(planted("detached_says_freed") ? Released::freed : Released::unconfirmed);
  }
  return named;
}

Grant Lock::grant() const {
  check_not_moved_from();
  const auto& owner = this->owner();
  return {grant_->held->row_token(), owner};
}

Lock::Handle* Lock::used() const noexcept {
  if (grant_) grant_->used();
  return grant_.get();
}

const std::string& Lock::name() const noexcept {
  const auto* handle = used();
  return handle != nullptr ? handle->held->name() : nothing;
}

Token Lock::token() const noexcept {
  const auto* handle = used();
  return handle != nullptr ? handle->held->token() : Token{};
}

const std::string& Lock::owner() const noexcept {
  const auto* handle = used();
  if (handle == nullptr) return nothing;
  if (planted("named_and_passed_on")) return handle->held->owner();
  handle->held->pin();  // whoever is told may ask for it by that
  return handle->held->was_passed_on() ? nobody : handle->held->owner();
}

std::stop_token Lock::lost() const noexcept {
  const auto* handle = used();
  return handle != nullptr ? handle->held->lost() : stopped();
}

std::optional<Wanted> Lock::wanted() const noexcept {
  if (!valid() || grant_->fork_guard.forked()) return std::nullopt;
  return grant_->core->wanted(*grant_->held);
}

std::stop_token Lock::asked() const noexcept {
  const auto* handle = used();
  if (handle == nullptr) return stopped();
  if (handle->released() || handle->fork_guard.forked()) return handle->held->asked();
  return handle->core->asked(handle->held);
}

bool Lock::valid() const noexcept {
  const auto* handle = used();
  const bool left = handle == nullptr || (handle->released() && !planted("left_entry_valid"));
  return !left && !handle->is_parents() && handle->held->valid(BootClock::now());
}

Duration Lock::remaining() const noexcept {
  const auto* handle = used();
  return handle != nullptr && !handle->released() && !handle->is_parents() ? handle->held->remaining(BootClock::now())
                                                                           : Duration{};
}

void Lock::check() const {
  if (valid()) return;
  check_not_moved_from();
  if (grant_->is_parents()) throw parents();
  const auto why = loss();
  throw Error(Fault::lost, fmt::format("the lock {} (token {}) is {}", in_quotes(name()), number(token()),
                                       why ? fmt::format("lost: {}", to_string(*why)) : "no longer held"));
}

std::optional<Loss> Lock::loss() const noexcept {
  // Trust may have ended just now, before any thread of the engine could say so.
  if (!grant_ || valid()) return std::nullopt;
  return grant_->held->loss();
}

void Lock::check_not_moved_from() const {
  if (!grant_ && !planted("moved_from_not_noticed"))
    throw Error(Fault::misuse, "the lock holds nothing: it was moved from, or made without a grant");
}

Lock::Handle& Lock::here() const {
  check_not_moved_from();
  if (grant_->fork_guard.forked()) throw parents();
  grant_->used();
  return *grant_;
}

// Of another entry of the lease, which may be there still, this one has nothing.
Lock::Handle& Lock::kept() const {
  auto& handle = here();
  check();
  return handle;
}

void Lock::fence(TransactionRef transaction, const FenceOptions& options) {
  auto& handle = here();
  handle.core->in_transaction().fence({&handle.held, 1}, transaction, options, handle.released());
}

void Lock::with_fence(TransactionRef transaction, const std::function<void()>& work, const FenceOptions& options) {
  const auto core = here().core;  // the work may let go of this Lock
  engine::InTransaction::hear(transaction, options, [this] { check(); });
  core->in_transaction().with_fence({grant_->held}, transaction, work, options);
}

std::string Lock::fence_sql() const {
  auto& handle = kept();
  return handle.core->fence_sql(*handle.held);
}

void Lock::extend(SaturatingDuration lease, SaturatingDuration at_least) {
  auto& handle = here();
  api::check_lease("the lease of extend()", lease);
  api::check_time("at_least of extend()", at_least);
  if (handle.released() || handle.held->ended()) check();
  handle.core->extend(handle.held, lease, at_least);
}

void Lock::ensure(SaturatingDuration left) {
  static_cast<void>(here());
  api::check_time("the time to be ensured", left);
  auto& handle = kept();
  handle.core->ensure(handle.held, left);
}

void Lock::downgrade() {
  auto& handle = kept();
  grant_ = std::make_shared<Handle>(handle.core, handle.core->downgrade(handle.held));
}

bool Lock::try_upgrade() {
  auto& handle = kept();
  auto held = handle.core->upgrade(handle.held);
  if (!held) return false;
  grant_ = std::make_shared<Handle>(handle.core, std::move(held));
  return true;
}

void Lock::update_metadata(std::string_view metadata, Keep keep) {
  auto& handle = here();
  api::check_metadata("the metadata", metadata);
  if (handle.released() || handle.held->ended()) check();
  handle.core->update_metadata(handle.held, metadata, keep);
}

}  // namespace v0
}  // namespace dlock
