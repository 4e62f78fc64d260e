// Releases all that an engine holds, whoever has it.
#include "engine/lease/releasing_all.hpp"

#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

// To leave a node's row takes two statements, which may have to be prepared.
constexpr int trips_of_a_release = 8;

}  // namespace

Engine::ReleasedAll ReleaseOfAll::operator()() {
  take();
  send_together();
  send_alone();
  lingering_.end_all(until_);
  return released_;
}

void ReleaseOfAll::take() {
  auto all = context_.timer.watched();
  taken_.reserve(all.size());
  alone_.reserve(all.size());
  for (auto& held : all) {
    if (!context_.entries.take(held)) continue;
    const bool was_lost = !held->let_go();  // by what has been seen: whether its trust is over is not asked
    taken_.push_back({held, was_lost});     // there is room reserved
    context_.tell_if_lost(held);
    context_.forget(held);
    try {
      late_attempts_.expect(*held);
    } catch (const std::exception&) {  // out of memory: such an attempt ends with its lease
    }
    if (!was_lost && !planted("release_all_in_silence")) context_.events->signal_end(held);
  }
  std::sort(taken_.begin(), taken_.end(), [](const ReleaseRequest& one, const ReleaseRequest& other) {
    return one.held->name() < other.held->name();
  });
}

// Plain leases, each name once: of two leases of one name one is another's by now.
void ReleaseOfAll::send_together() {
  const std::size_t most = context_.options.combine;
  std::vector<ReleaseRequest> batch;
  for (auto& one : taken_) {
    const bool again = !batch.empty() && batch.back().held->name() == one.held->name();
    if (most < 2 || again || one.held->mode() != Mode::exclusive || one.held->to_be_reopened) {
      alone_.push_back(std::move(one));
      continue;
    }
    batch.push_back(std::move(one));
    if (batch.size() == most) send(batch);
  }
  if (!batch.empty()) send(batch);
}

void ReleaseOfAll::send(std::vector<ReleaseRequest>& batch) {
  std::vector<store::LeaseKey> keys;
  keys.reserve(batch.size());
  for (const auto& one : batch) keys.push_back(one.held->key());
  Doubt unanswered;
  try {
    const auto freed = context_.retry(
        until_, unanswered, [&](Deadline deadline) { return context_.table->release_together(keys, deadline); });
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].unanswered = unanswered;
      if (freed[i]) end(batch[i], releaser_.after_release(batch[i], {*freed[i], {}}));
      else alone_.push_back(std::move(batch[i]));
    }
  } catch (const Error& error) {
    for (const auto& one : batch) end(one, releaser_.release_later(one, error));
  }
  batch.clear();
}

// Each within its share of what is left of the time, if that is enough for an answer: a row that stays locked takes
// little from the others.
void ReleaseOfAll::send_alone() {
  const auto least = context_.within(std::chrono::milliseconds{50}, trips_of_a_release);
  for (std::size_t i = 0; i < alone_.size(); ++i) {
    const auto now = BootClock::now();
    const auto share =
        std::chrono::floor<Duration>(std::max(until_, now) - now) / static_cast<Duration::rep>(alone_.size() - i);
    alone_[i].deadline = std::min(until_, later(now, std::max<Duration>(share, least)));
    send(alone_[i]);
  }
}

void ReleaseOfAll::send(ReleaseRequest& one) {
  try {
    if (one.held->to_be_reopened && !planted("released_all_stay_closed")) throw not_reopened();
    const auto left = context_.retry(one.deadline, one.unanswered, [&](Deadline deadline) {
      return context_.table->leave(one.held->key(), deadline);
    });
    end(one, releaser_.after_release(one, left));
  } catch (const Error& error) { end(one, releaser_.release_later(one, error)); }
}

void ReleaseOfAll::end(const ReleaseRequest& one, Released released) {
  context_.entries.became(one.held, released);
  context_.queues->wake_head(one.held->name());
  switch (released) {
    case Released::freed: ++released_.freed; break;
    case Released::still_held: ++released_.still_held; break;
    case Released::was_lost: ++released_.was_lost; break;
    case Released::unconfirmed: ++released_.unconfirmed; break;
  }
}

}  // namespace dlock::engine
