// This file knows how entries are counted.
#include "engine/entries.hpp"

#include <atomic>

namespace dlock::engine {

Actor this_actor() noexcept {
  static std::atomic<Actor> last{0};
  thread_local const Actor number = ++last;
  return number;
}

void Entries::open_to_this_thread(const std::shared_ptr<Held>& held) {
  const Key key{this_actor(), held->name()};
  const std::lock_guard guard(mutex_);
  open_.erase(key);  // its key is a view of the old grant's name
  held->actor = key.first;
  open_.emplace(key, held);
}

std::shared_ptr<Held> Entries::enter(const std::string& name) {
  const std::lock_guard guard(mutex_);
  const auto found = open_.find(Key{this_actor(), name});
  if (found == open_.end()) return nullptr;
  ++found->second->entries;
  return found->second;
}

Entries::Rest Entries::leave(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(mutex_);
  if (held->detached) return Rest::detached;
  if (--held->entries > 0) return Rest::others;
  forget(held);
  return Rest::nothing;
}

void Entries::close(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(mutex_);
  forget(held);
}

void Entries::detach(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(mutex_);
  held->detached = true;
  forget(held);
}

void Entries::forget(const std::shared_ptr<Held>& held) {
  const auto found = open_.find(Key{held->actor, held->name()});
  if (found != open_.end() && found->second == held) open_.erase(found);
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
