// What each call on a LockSet means to the engine.
#include "api/lock_set_handle.hpp"

#include "api/open.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

std::string_view name_of(const Lock& lock) { return lock.name(); }

// The worst comes last.
int weight(Released released) {
  switch (released) {
    case Released::freed: return 0;
    case Released::still_held: return 1;
    case Released::unconfirmed: return 2;
    case Released::was_lost: return 3;
  }
  return 0;
}

}  // namespace

LockSet::Handle::Handle(std::shared_ptr<Core> its_core, std::size_t how_many) : core(std::move(its_core)) {
  locks.reserve(how_many);
}

void LockSet::Handle::take(std::span<const std::shared_ptr<engine::Lease>> all) {
  try {
    for (const auto& held : all) {
      locks.emplace_back(std::make_shared<Lock::Handle>(core, held));
      locks.back().grant_->used();
    }
  } catch (...) {  // those it has are given back by their own
    core->release_each(all.subspan(locks.size()), core->options().timeouts.release);
    throw;
  }
  for (const auto& held : all)
    if (!planted("several_lost_in_silence")) held->tell_also(lost);
}

LockSet::Handle::~Handle() {
  for (const auto& lock : locks) lock.grant_->held->tell_no_longer(lost);
}

std::vector<std::shared_ptr<engine::Lease>> LockSet::Handle::leases() const {
  std::vector<std::shared_ptr<engine::Lease>> all;
  all.reserve(locks.size());
  for (const auto& lock : locks) all.push_back(lock.grant_->held);
  return all;
}

void LockSet::Handle::release() {
  if (locks.front().grant_->released()) return;
  const auto ends = core->release_each(leases(), core->options().timeouts.release);
  for (std::size_t i = 0; i < ends.size(); ++i) locks[i].grant_->is_released(ends[i]);
}

LockSet::LockSet() noexcept = default;
LockSet::LockSet(std::unique_ptr<Handle> handle) noexcept : handle_(std::move(handle)) {}

LockSet::LockSet(LockSet&& other) noexcept : handle_(std::move(other.handle_)) {
  for (const auto& lock : *this) lock.grant_->moved();
}

LockSet& LockSet::operator=(LockSet&& other) noexcept {
  if (this == &other) return *this;
  const LockSet old(std::exchange(handle_, std::move(other.handle_)));  // ends as a set does
  for (const auto& lock : *this) lock.grant_->moved();
  return *this;
}

LockSet::~LockSet() {
  if (!handle_) return;
  if (handle_->fork_guard.forked()) {
    static_cast<void>(handle_.release());  // the parent's: this process must not even destroy its copies
    return;
  }
  try {
    handle_->release();
  } catch (...) {  // out of memory: what is not released yet is by its Lock
  }
}

LockSet::Handle& LockSet::here() const {
  if (!handle_)
    throw Error(Fault::misuse, "the set of locks holds nothing: it was moved from, or made without a grant");
  if (handle_->fork_guard.forked())
    throw Error(Fault::misuse, "the set of locks belongs to the parent of this process");
  return *handle_;
}

Released LockSet::release() {
  auto& handle = here();
  handle.release();
  auto worst = Released::freed;
  for (const auto& lock : handle.locks)
    worst =
        std::max(worst, lock.grant_->what_became(), [](auto one, auto other) { return weight(one) < weight(other); });
  return worst;
}

const Lock* LockSet::begin() const noexcept { return handle_ ? handle_->locks.data() : nullptr; }
const Lock* LockSet::end() const noexcept { return begin() + size(); }
std::size_t LockSet::size() const noexcept { return handle_ ? handle_->locks.size() : 0; }

bool LockSet::contains(std::string_view name) const noexcept {
  return std::ranges::binary_search(begin(), end(), name, {}, name_of);
}

const Lock& LockSet::operator[](std::string_view name) const {
  static_cast<void>(here());
  const auto* const found = std::ranges::lower_bound(begin(), end(), name, {}, name_of);
  if (found == end() || name_of(*found) != name)
    throw Error(Fault::misuse, fmt::format("{} is not among the names of this set of locks", in_quotes(name)));
  return *found;
}

std::stop_token LockSet::lost() const noexcept { return handle_ ? handle_->lost.get_token() : Lock().lost(); }

bool LockSet::valid() const noexcept {
  return !empty() && std::ranges::all_of(*this, [](const Lock& lock) { return lock.valid(); });
}

Duration LockSet::remaining() const noexcept {
  auto least = empty() ? Duration{} : Duration::max();
  for (const auto& lock : *this) least = std::min(least, lock.remaining());
  return least;
}

void LockSet::check() const {
  static_cast<void>(here());
  for (const auto& lock : *this) lock.check();
}

void LockSet::extend(SaturatingDuration lease, SaturatingDuration at_least) {
  for (auto& lock : here().locks) lock.extend(lease, at_least);
}

void LockSet::fence(TransactionRef transaction, const FenceOptions& options) {
  auto& handle = here();
  for (const auto& lock : handle.locks) lock.grant_->used();
  auto all = handle.leases();
  if (planted("several_fenced_in_part")) all.resize(1);
  handle.core->in_transaction().fence(all, transaction, options, handle.locks.front().grant_->released());
}

void LockSet::with_fence(TransactionRef transaction, const std::function<void()>& work, const FenceOptions& options) {
  auto& handle = here();
  engine::InTransaction::hear(transaction, options, [this] { check(); });
  const auto core = handle.core;  // the work may let go of this set
  core->in_transaction().with_fence(handle.leases(), transaction, work, options);
}

}  // namespace v0
}  // namespace dlock
