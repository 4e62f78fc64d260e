// Remembers what may hold a name although nobody here has it: when it is looked for, how often, for how long, and how
// many at most. How it is freed: leftovers.cpp.
#pragma once

#include "engine/backoff.hpp"
#include "store/lock_table.hpp"

#include <dlock/duration.hpp>
#include <dlock/token.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::engine {

// An owner that gave a name back, or gave up, while an attempt of its own was without an answer, and may take effect at
// any time.
struct Leftover {
  std::string name, owner;
  Token kept{};       // this grant of the owner's is not meant
  bool freed = true;  // false: it may hold the name now
  Duration lease{};   // so long it may do so
  Mode mode = Mode::exclusive;
  Token closed{};  // of this grant of the owner's the at-least time, too, is to end
};

// Threads: one at a time, but for none().
class Leftovers {
 public:
  // When it is to be looked for first.
  Instant add(Leftover leftover, Instant now) {
    const auto next = leftover.freed ? later(now, shortest) : now;
    if (const auto same = find(leftover); same != all_.end()) {
      leftover.freed = leftover.freed && same->leftover.freed;
      *same = {std::move(leftover), now, next};
      return next;
    }
    if (all_.size() >= most) {
      const auto oldest =
          std::find_if(all_.begin(), all_.end(), [](const WatchedLeftover& one) { return one.leftover.freed; });
      if (oldest != all_.end()) all_.erase(oldest);
    }
    all_.push_back({std::move(leftover), now, next});
    how_many_ = all_.size();
    return next;
  }

  // One that is to be looked for now, and is not again until was_looked_for(). It stays known meanwhile.
  std::optional<Leftover> take_due(Instant now) {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const WatchedLeftover& one) { return one.next <= now; });
    if (found == all_.end()) return std::nullopt;
    auto leftover = std::make_optional(found->leftover);
    found->next = Instant::max();
    return leftover;
  }

  // All, to be forgotten.
  std::vector<Leftover> take_all() {
    std::vector<Leftover> all;
    all.reserve(all_.size());
    for (auto& one : all_) all.push_back(std::move(one.leftover));
    all_.clear();
    how_many_ = 0;
    return all;
  }

  void was_looked_for(const Leftover& leftover, bool failed, Instant now) {
    const auto same = find(leftover);
    if (same == all_.end() || same->next != Instant::max()) return;  // it was added anew meanwhile
    const auto age = std::chrono::floor<Duration>(now - same->since);
    if (age >= std::max(watched_for, leftover.freed ? Duration{} : leftover.lease)) {
      all_.erase(same);
    } else {
      same->leftover.freed = leftover.freed;
      const auto pause = std::clamp(age / 4, failed ? shortest_after_failure : shortest, longest);
      same->next = later(now, jittered(pause));
    }
    how_many_ = all_.size();
  }

  Instant next() const {
    auto next = Instant::max();
    for (const auto& one : all_) next = std::min(next, one.next);
    return next;
  }

  bool none() const noexcept { return how_many_ == 0; }

  bool has(std::string_view name) const {
    return std::any_of(all_.begin(), all_.end(), [&](const WatchedLeftover& one) { return one.leftover.name == name; });
  }

  // The one that holds a name under this owner and token. Empty: it is held by somebody.
  std::optional<Leftover> holding(std::string_view name, std::string_view owner, Token token) const {
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const WatchedLeftover& one) {
      return one.leftover.name == name && one.leftover.owner == owner && one.leftover.kept != token;
    });
    if (found == all_.end()) return std::nullopt;
    return found->leftover;
  }

 private:
  // How long an attempt without an answer is reckoned with, and with how many at once.
  static constexpr Duration watched_for = std::chrono::hours{1};
  static constexpr std::size_t most = 1000;
  // Between two looks for what it may have done: a quarter of the time that has passed since, but
  static constexpr Duration shortest = std::chrono::milliseconds{100}, longest = std::chrono::minutes{2};
  static constexpr Duration shortest_after_failure = std::chrono::seconds{1};

  struct WatchedLeftover {
    Leftover leftover;
    Instant since, next;
  };

  std::vector<WatchedLeftover>::iterator find(const Leftover& leftover) {
    return std::find_if(all_.begin(), all_.end(), [&](const WatchedLeftover& one) {
      return one.leftover.owner == leftover.owner && one.leftover.name == leftover.name;
    });
  }

  std::vector<WatchedLeftover> all_;
  std::atomic<std::size_t> how_many_{0};  // for none()
};

// For the end of an engine, when nobody is there to look for them later: waits until what was given up has been done,
// or never will be, for `patience` at most, and then withdraws each once more, what was noted last first; what fails is
// tried again, until nothing has gone well for that long. `ends_within`: an instant that far from now, or the one by
// which the engine is to have ended, if that comes before. Throws std::bad_alloc.
void withdraw_at_last(store::LockTable& table, std::vector<Leftover> left, Duration patience,
                      const std::function<Instant(Duration)>& ends_within);

// Frees what it holds by then. `until`: by when each statement has to be answered. True: it may have held something.
// Throws Failure.
bool free_leftover(store::LockTable& table, const Leftover& leftover, const std::function<Instant()>& until);

}  // namespace dlock::engine
