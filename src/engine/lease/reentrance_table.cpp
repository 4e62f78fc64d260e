// How entries are counted.
#include "engine/lease/reentrance_table.hpp"

#include "types/mutant.hpp"

#include <atomic>
#include <functional>
#include <utility>

namespace dlock::engine {

ThreadId this_thread_id() noexcept {
  static std::atomic<ThreadId> last{0};
  thread_local const ThreadId number = ++last;
  return number;
}

Entrant::Entrant(std::string_view its_job) noexcept : number(this_thread_id()), job(its_job) {
  constexpr ThreadId no_thread = ThreadId{1} << 63U;
  if (!job.empty() && !planted("job_enters_by_thread")) number = no_thread | std::hash<std::string_view>{}(job);
}

ReentranceTable::Chain& ReentranceTable::chain(ThreadId actor, std::string_view name) noexcept {
  const auto hash = std::hash<std::string_view>{}(name) ^ static_cast<std::size_t>(actor * 0x9E3779B97F4A7C15U >> 16U);
  return chains_[hash & (chains_.size() - 1)];
}

ReentranceTable::Chain& ReentranceTable::find(const Entrant& entrant, std::string_view name) noexcept {
  const auto is_it = [&](const Lease& held) REQUIRES(Lease::reentrance_mutex) {
    const bool same_job = held.said().job == entrant.job || planted("job_enters_by_thread");
    return held.actor == entrant.number && same_job && held.name() == name;
  };
  auto* link = &chain(entrant.number, name);
  while (*link && !is_it(**link)) link = &(*link)->next_open;
  return *link;
}

void ReentranceTable::make_room(std::size_t chains) {
  std::vector<Chain> old(chains);
  old.swap(chains_);
  for (auto& first : old) {
    while (first) {
      auto held = std::move(first);
      first = std::move(held->next_open);
      auto& to = chain(held->actor, held->name());
      held->next_open = std::move(to);
      to = std::move(held);
    }
  }
}

void ReentranceTable::open(const std::shared_ptr<Lease>& held) {
  const Entrant entrant(held->said().job);
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  if (held->entries <= 0) return;  // it was let go of in the meantime
  if (auto& old = find(entrant, held->name())) {
    // Another thread of the job was granted it since; but after a restore, what is over can have the larger token.
    if (number(old->token()) > number(held->token()) && old->valid(BootClock::now())) return;
    unlink(old);
  }
  if (open_ == chains_.size()) make_room(2 * chains_.size());
  held->actor = entrant.number;
  auto& to = chain(entrant.number, held->name());
  held->next_open = std::move(to);
  to = held;
  ++open_;
}

std::shared_ptr<Lease> ReentranceTable::enter(const Entrant& entrant, const std::string& name) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  const auto& found = find(entrant, name);
  if (found) ++found->entries;
  return found;
}

int ReentranceTable::count(const Entrant& entrant, const std::string& name, Instant now) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  const auto& found = find(entrant, name);
  return found && found->valid(now) ? found->entries : 0;
}

int ReentranceTable::inside(const Lease& held) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  return std::max(held.entries, 0);
}

bool ReentranceTable::opened(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  return held->actor != 0;
}

ReentranceTable::Rest ReentranceTable::leave(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  if (held->entries == 0) return Rest::detached;
  if (held->entries < 0) return Rest::released;
  if (--held->entries > 0) return Rest::others;
  forget(*held);
  return Rest::nothing;
}

std::vector<std::shared_ptr<Lease>> ReentranceTable::of_this_thread() {
  std::vector<std::shared_ptr<Lease>> all;
  const auto actor = this_thread_id();
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  for (const auto& first : chains_)
    for (const auto* link = &first; *link; link = &(*link)->next_open)
      if ((*link)->actor == actor) all.push_back(*link);
  return all;
}

void ReentranceTable::close(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  forget(*held);
}

int ReentranceTable::detach(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  if (held->entries < 0) return 0;
  forget(*held);
  return std::exchange(held->entries, 0);
}

bool ReentranceTable::take(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  if (held->entries <= 0) return false;
  forget(*held);
  held->entries = -1 - static_cast<int>(Released::unconfirmed);
  return true;
}

void ReentranceTable::became(const std::shared_ptr<Lease>& held, Released released) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  held->entries = -1 - static_cast<int>(released);
}

Released ReentranceTable::what_became(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(mutex_, Lease::reentrance_mutex);
  return static_cast<Released>(-1 - held->entries);
}

void ReentranceTable::forget(const Lease& held) noexcept {
  if (held.actor == 0) return;
  auto* link = &chain(held.actor, held.name());
  while (*link && link->get() != &held) link = &(*link)->next_open;
  if (*link) unlink(*link);
}

void ReentranceTable::unlink(Chain& link) noexcept {
  const auto held = std::move(link);
  link = std::move(held->next_open);
  held->actor = 0;
  --open_;
}

}  // namespace dlock::engine
