// How an abandoned lease is settled and told of: once, or with the doubt in words.
#pragma once

#include "engine/event_queue.hpp"
#include "store/reaper_table.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <dlock/event.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlock::engine {

// The settling of one reaper, with what is in doubt. Each `ask` below puts a question to the table until it is answered,
// or throws Failure.
// Threads: one at a time. Refers to the table.
class Settler {
 public:
  Settler(store::ReaperTable& table, std::shared_ptr<EventQueue> events, const std::string& id)
      : table_(table), events_(std::move(events)), id_(id) {}

  // Reports it if it was this reaper that settled it: whoever moves the token on has settled it, and nobody else. Answers
  // how many were settled, one that was in doubt among them.
  template <class Ask>
  std::size_t settle(const store::Abandoned& lease, Ask ask) {
    if (is_doubtful(lease)) return 0;  // its row was locked a moment ago
    bool in_doubt = false;
    try {
      const bool settled = ask([&](Deadline until) {
        try {
          return table_.settle(lease.name, lease.token, id_, until);
        } catch (const Failure& failure) {
          in_doubt = in_doubt || failure.may_have_run();
          if (failure.cause() != Cause::locked) throw;
          return false;  // somebody is at it: the next round finds it, if it is still abandoned then
        }
      });
      if (settled) report(lease);
      if (settled || !in_doubt) return settled ? 1 : 0;
    } catch (...) {
      if (in_doubt) doubtful_.push_back(lease);
      throw;
    }
    doubtful_.push_back(lease);
    return resolve_doubts(ask);
  }

  // Answers how many of what was in doubt this reaper has settled.
  template <class Ask>
  std::size_t resolve_doubts(Ask ask) {
    std::size_t settled = 0;
    for (auto at = doubtful_.begin(); at != doubtful_.end();)
      at = is_resolved(*at, settled, ask) ? doubtful_.erase(at) : std::next(at);
    return settled;
  }

  // Removes those who shared a name and hold nothing any more, and tells of those who never let go, as settle does. Who
  // was quicker tells of them. What is in doubt comes first, and the others then by their next round.
  template <class Ask>
  void forget(std::vector<store::DeadHolder> dead, Ask ask) {
    bool in_doubt = !dead_in_doubt_.empty();
    if (in_doubt) dead = dead_in_doubt_;
    if (dead.empty()) return;
    std::size_t removed = 0;
    try {
      removed = ask([&](Deadline until) {
        try {
          return table_.forget_holders(dead, until);
        } catch (const Failure& failure) {
          in_doubt = in_doubt || failure.may_have_run();
          throw;
        }
      });
    } catch (...) {
      if (in_doubt) dead_in_doubt_ = std::move(dead);
      throw;
    }
    dead_in_doubt_.clear();
    if (removed == dead.size()) report(dead);
    else if (in_doubt && !planted("dead_untold")) report(dead, unclear);
  }

  // Nobody will look them up any more.
  void give_up_doubts() noexcept {
    try {
      for (const auto& lease : doubtful_) report(lease, unclear);
      doubtful_.clear();
      report(dead_in_doubt_, unclear);
      dead_in_doubt_.clear();
    } catch (const std::exception&) {  // there is no memory to tell it
    }
  }

 private:
  static constexpr const char* unclear = "; the answer was lost, so another reaper may have told this too";

  void report(const store::Abandoned& lease, const char* doubt = "") const {
    if (lease.node.empty()) return;  // of several, each of whom is told by itself
    events_->emit(Event::Kind::abandoned, lease.name, lease.token, lease.expired,
                  fmt::format("held by {} ({}), expired without release{}", lease.label, lease.node, doubt));
  }

  void report(const std::vector<store::DeadHolder>& dead, const char* doubt = "") const {
    for (const auto& one : dead)
      if (one.abandoned) report(one.lease, doubt);
  }

  bool is_doubtful(const store::Abandoned& lease) const {
    return std::ranges::any_of(
        doubtful_, [&](const auto& other) { return other.name == lease.name && other.token == lease.token; });
  }

  // What may have been settled without an answer is settled again: what was sent then may take effect after whatever is
  // asked now, and changes nothing any more once this has. If somebody has settled it, that is looked up by its signature.
  // Once the name was granted again that is gone: then it is told with the doubt in words, since told twice is better than
  // never. False: its row is locked, perhaps by what was sent then.
  template <class Ask>
  bool is_resolved(const store::Abandoned& lease, std::size_t& settled, Ask ask) {
    try {
      if (!planted("doubt_dropped") &&
          ask([&](Deadline until) { return table_.settle(lease.name, lease.token, id_, until); })) {
        report(lease);
        ++settled;
        return true;
      }
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::locked) throw;
      return false;
    }
    switch (ask([&](Deadline until) { return table_.settled(lease.name, lease.token, id_, until); })) {
      case store::Settled::by_asker: report(lease); break;
      case store::Settled::not_by_asker: return true;
      case store::Settled::unclear: report(lease, unclear); break;
    }
    ++settled;
    return true;
  }

  store::ReaperTable& table_;
  const std::shared_ptr<EventQueue> events_;
  const std::string id_;  // signs what is settled
  // Perhaps settled, and removed, by this reaper: nobody answered.
  std::vector<store::Abandoned> doubtful_;
  std::vector<store::DeadHolder> dead_in_doubt_;
};

}  // namespace dlock::engine
