// This file knows how entries are counted.
#include "engine/entries.hpp"

#include <atomic>
#include <functional>

namespace dlock::engine {

Actor this_actor() noexcept {
  static std::atomic<Actor> last{0};
  thread_local const Actor number = ++last;
  return number;
}

Entries::Chain& Entries::chain(Actor actor, std::string_view name) noexcept {
  const auto hash = std::hash<std::string_view>{}(name) ^ static_cast<std::size_t>(actor * 0x9E3779B97F4A7C15U >> 16U);
  return chains_[hash & (chains_.size() - 1)];
}

Entries::Chain& Entries::find(Actor actor, std::string_view name) noexcept {
  auto* link = &chain(actor, name);
  while (*link && ((*link)->actor != actor || (*link)->name() != name)) link = &(*link)->next_open;
  return *link;
}

void Entries::make_room(std::size_t chains) {
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

void Entries::open_to_this_thread(const std::shared_ptr<Held>& held) {
  const auto actor = this_actor();
  const std::lock_guard guard(mutex_);
  if (auto& old = find(actor, held->name())) unlink(old);
  if (open_ == chains_.size()) make_room(2 * chains_.size());
  held->actor = actor;
  auto& to = chain(actor, held->name());
  held->next_open = std::move(to);
  to = held;
  ++open_;
}

std::shared_ptr<Held> Entries::enter(const std::string& name) {
  const std::lock_guard guard(mutex_);
  const auto& found = find(this_actor(), name);
  if (found) ++found->entries;
  return found;
}

Entries::Rest Entries::leave(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(mutex_);
  if (held->entries == 0) return Rest::detached;
  if (--held->entries > 0) return Rest::others;
  forget(*held);
  return Rest::nothing;
}

std::vector<std::shared_ptr<Held>> Entries::of_this_thread() {
  std::vector<std::shared_ptr<Held>> all;
  const auto actor = this_actor();
  const std::lock_guard guard(mutex_);
  for (const auto& first : chains_)
    for (const auto* link = &first; *link; link = &(*link)->next_open)
      if ((*link)->actor == actor) all.push_back(*link);
  return all;
}

void Entries::close(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(mutex_);
  forget(*held);
}

void Entries::detach(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(mutex_);
  held->entries = 0;
  forget(*held);
}

void Entries::forget(const Held& held) noexcept {
  if (held.actor == 0) return;
  auto& link = find(held.actor, held.name());
  if (link.get() == &held) unlink(link);
}

void Entries::unlink(Chain& link) noexcept {
  const auto held = std::move(link);
  link = std::move(held->next_open);
  held->actor = 0;
  --open_;
}

Owners::Mark Owners::mark(const std::string& owner) {
  const std::lock_guard guard(mutex_);
  std::erase_if(marked_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = marked_[owner];
  auto mark = known.lock();
  if (!mark) {
    mark = std::make_shared<const std::string>(owner);
    known = mark;
  }
  return mark;
}

bool Owners::ours(std::string_view owner) const {
  const std::lock_guard guard(mutex_);
  const auto found = marked_.find(owner);
  return found != marked_.end() && !found->second.expired();
}

}  // namespace dlock::engine
