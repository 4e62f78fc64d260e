// How an abandoned lease is settled and told of: once, or with the doubt in words.
#pragma once

#include "engine/event_queue.hpp"
#include "store/reaper_table.hpp"
#include "types/clock.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <dlock/event.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlock::engine {

// The settling of one reaper, with what is in doubt. Each `ask` below puts a question to the table until it is
// answered, or throws Failure.
// Threads: one at a time. Refers to the table.
class Settler {
 public:
  Settler(store::ReaperTable& table, std::shared_ptr<EventQueue> events, const std::string& id)
      : table_(table), events_(std::move(events)), id_(id) {}

  // Settles it, and tells of it if it was this reaper that did: whoever moves the token on has settled it, and nobody
  // else. What is in doubt is left to resolve_doubts. True: it was, beyond doubt.
  template <class Asking>
  bool settle(const store::Abandoned& lease, Asking ask) {
    if (is_in(doubtful_, lease)) return false;  // which may be told of there
    Attempt attempt;
    try {
      if (settled_by(attempt, lease, ask)) {
        report(lease);
        return true;
      }
      if (!attempt.in_doubt) return false;  // where its row is locked the next round finds it
    } catch (...) {
      if (attempt.in_doubt) doubtful_.push_back({lease});
      throw;
    }
    doubtful_.push_back({lease});
    if (is_resolved(doubtful_.back(), ask)) doubtful_.pop_back();
    return false;
  }

  // Removes one of those who shared a name, hold nothing any more and never let go, and tells of it if it was this
  // reaper that did.
  template <class Asking>
  void forget(const store::DeadHolder& dead, Asking ask) {
    if (!is_in(doubtful_dead_, dead) && !is_forgotten(dead, false, ask)) doubtful_dead_.push_back(dead);
  }

  // `resolved` gets each lease that is in doubt no more.
  template <class Asking, class Resolved>
  void resolve_doubts(Asking ask, Resolved resolved) {
    for (auto at = doubtful_.begin(); at != doubtful_.end();) {
      if (!is_resolved(*at, ask)) {
        ++at;
        continue;
      }
      const auto lease = std::move(at->lease);
      at = doubtful_.erase(at);
      resolved(lease);
    }
    for (auto at = doubtful_dead_.begin(); at != doubtful_dead_.end();)
      at = is_forgotten(*at, true, ask) ? doubtful_dead_.erase(at) : std::next(at);
  }

  // How many were told of since the beginning.
  std::size_t told() const { return told_; }

  // Nobody will look them up any more.
  void give_up_doubts() noexcept {
    try {
      for (const auto& one : doubtful_)
        if (!one.held_since) report(one.lease, unclear);
      doubtful_.clear();
      for (const auto& dead : doubtful_dead_) report(dead.lease, unclear);
      doubtful_dead_.clear();
    } catch (const std::exception&) {  // there is no memory to tell it
    }
  }

 private:
  struct Doubt {
    store::Abandoned lease{};
    std::optional<Instant> held_since{};  // its holder was seen to go on
  };
  struct Attempt {
    bool in_doubt = false, locked = false;
  };

  // What was sent is not expected to come later than that.
  static constexpr Duration longest_lateness = std::chrono::hours{1};
  static constexpr const char* unclear = "; the answer was lost, so another reaper may have told this too";

  void report(const store::Abandoned& lease, const char* doubt = "") {
    if (lease.node.empty()) return;  // of several, each of whom is told by itself
    events_->emit(Event::Kind::abandoned, lease.name, lease.token, lease.expired,
                  fmt::format("held by {} ({}), expired without release{}", lease.label, lease.node, doubt));
    ++told_;
  }

  static bool is_in(const std::vector<Doubt>& all, const store::Abandoned& lease) {
    return std::ranges::any_of(
        all, [&](const auto& other) { return other.lease.name == lease.name && other.lease.token == lease.token; });
  }
  static bool is_in(const std::vector<store::DeadHolder>& all, const store::DeadHolder& dead) {
    return std::ranges::any_of(
        all, [&](const auto& other) { return other.lease.name == dead.lease.name && other.owner == dead.owner; });
  }

  // Whether `change` has changed something. A row that is locked is not waited for.
  template <class Asking, class Change>
  static bool changed(Attempt& attempt, Asking ask, Change change) {
    return ask([&](Deadline until) {
      attempt.locked = false;
      try {
        return change(until);
      } catch (const Failure& failure) {
        attempt.in_doubt = attempt.in_doubt || failure.may_have_run();
        attempt.locked = failure.cause() == Cause::locked;
        if (!attempt.locked) throw;
        return false;
      }
    });
  }

  template <class Asking>
  bool settled_by(Attempt& attempt, const store::Abandoned& lease, Asking ask) {
    return changed(attempt, ask, [&](Deadline until) { return table_.settle(lease.name, lease.token, id_, until); });
  }

  // What may have been settled without an answer is settled again: what was sent then may take effect after whatever is
  // asked now, and changes nothing any more once this has. If somebody has settled it, that is looked up by its
  // signature, and told with the doubt in words where that is gone, since told twice is better than never. False: that
  // is not known yet, since its row is locked, or it is held again, for as long as what was sent may still come.
  template <class Asking>
  bool is_resolved(Doubt& doubt, Asking ask) {
    const auto& lease = doubt.lease;
    Attempt attempt;
    if (!planted("doubt_dropped")) {
      if (settled_by(attempt, lease, ask)) {
        report(lease);
        return true;
      }
      if (attempt.locked) return false;
    }
    switch (ask([&](Deadline until) { return table_.settled(lease.name, lease.token, id_, until); })) {
      case store::Settled::by_asker: report(lease); break;
      case store::Settled::unclear: report(lease, unclear); break;
      case store::Settled::still_held:
        if (!doubt.held_since) doubt.held_since = BootClock::now();
        return planted("doubt_dropped") || BootClock::now() - *doubt.held_since > longest_lateness;
      case store::Settled::not_by_asker: break;
    }
    return true;
  }

  // False: it is in doubt, and its row is locked.
  template <class Asking>
  bool is_forgotten(const store::DeadHolder& dead, bool was_in_doubt, Asking ask) {
    Attempt attempt{was_in_doubt};
    try {
      const bool removed = changed(attempt, ask, [&](Deadline until) { return table_.forget_holder(dead, until); });
      if (removed) report(dead.lease);
      else if (attempt.in_doubt && attempt.locked) return false;
      else if (attempt.in_doubt && !planted("dead_untold") &&
               !ask([&](Deadline until) { return table_.has_holder(dead, until); }))
        report(dead.lease, unclear);
    } catch (...) {
      if (attempt.in_doubt && !was_in_doubt) doubtful_dead_.push_back(dead);
      throw;
    }
    return true;
  }

  store::ReaperTable& table_;
  const std::shared_ptr<EventQueue> events_;
  const std::string id_;  // signs what is settled
  // Perhaps settled, and removed, by this reaper: nobody answered.
  std::vector<Doubt> doubtful_;
  std::vector<store::DeadHolder> doubtful_dead_;
  std::size_t told_ = 0;
};

}  // namespace dlock::engine
