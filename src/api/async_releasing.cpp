// How asynchronous releases are carried out, many in one statement.
#include "api/async.hpp"

#include "types/mutant.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace dlock {
inline namespace v0 {

namespace {

// Who was asked for in vain is asked for again after so long, together with the others.
constexpr std::chrono::milliseconds pause_of_vain{50};
// What has waited here until its time was over is asked for once all the same.
constexpr Duration least_time = std::chrono::milliseconds{50};
constexpr int trips_of_a_release = 4;

}  // namespace

bool Engine::Async::releases_wait(Instant now) const {
  return !releases_.empty() || (!finishing_ && !unfinished_.empty() && unfinished_.front().again <= now);
}

// Those that have something to finish go alone.
std::vector<Engine::Async::ReleasePtr> Engine::Async::next_releases(Releases& from) {
  std::vector<ReleasePtr> batch;
  batch.reserve(std::min(most_, from.size()));
  const auto now = BootClock::now();
  while (!from.empty() && batch.size() < most_ && from.front().again <= now &&
         (batch.empty() || !from.front().finish)) {
    const auto one = from.begin();
    giving_back_.splice(giving_back_.end(), from, one);
    batch.push_back(one);
    if (one->finish) break;
  }
  return batch;
}

// Who releases is out of it when this returns, whenever the row is freed. Nothing is told on its thread.
void Engine::Async::release(std::shared_ptr<Lock::Handle>& held, std::function<void(Released)> handler) {
  {
    const MutexLock guard(mutex_, acquires_mutex);
    if (closed_) throw ended_;
    start();
  }
  Releases alone;
  alone.push_back({held, engine::ReleaseRequest{held->held}, std::move(handler),
                   later(BootClock::now(), core_->options().timeouts.release)});
  auto& one = alone.front();
  one.request.trusted_until = held->held->trusted_until();
  if (!one.held->released() && !planted("released_later"))
    if (const auto end = one.held->core->leave(one.request)) one.held->is_released(*end);
  held = nullptr;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    if (!closed_) {
      releases_.splice(releases_.end(), alone);
      work_.notify_one();
      return;
    }
  }
  release_at_last(one);
}

// None of them takes time of the others: who could not be freed is asked for again with all the rest, and when its own
// time is over it is left to the renewer.
void Engine::Async::give_back(std::vector<ReleasePtr> batch) noexcept {
  Instant ends_by;
  bool silent = false;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    ends_by = ends_by_;
    silent = silent_;
  }
  const auto time_of = [&](const Release& one) {
    const auto now = BootClock::now();
    const auto deadline =
        one.asked || silent
            ? one.deadline
            : std::max(one.deadline, later(now, core_->context()->within(least_time, trips_of_a_release)));
    return std::chrono::floor<Duration>(std::max(std::min(deadline, ends_by), now) - now);
  };
  std::vector<ReleasePtr> asked;
  std::optional<bool> heard;  // whether there was an answer; empty: nobody was asked
  try {
    std::vector<engine::ReleaseRequest> requests;
    requests.reserve(batch.size());
    asked.reserve(batch.size());
    Duration timeout{};
    for (const auto one : batch) {
      const auto time = time_of(*one);
      if (one->finish || one->held->released() || one->held->core != core_ || time <= Duration{}) continue;
      requests.push_back(one->request);
      asked.push_back(one);
      timeout = std::max(timeout, time);
    }
    if (!requests.empty()) {
      const auto given = core_->free_together(requests, timeout);
      for (std::size_t i = 0; i < given.size(); ++i) {
        // What has to go alone was not asked for yet.
        asked[i]->asked = given[i].end || given[i].locked;
        if (given[i].end) asked[i]->held->is_released(*given[i].end);
        else if (given[i].locked) asked[i]->request.unanswered = given[i].unanswered;
        else asked[i]->finish = given[i].finish;
        if (asked[i]->asked) heard = heard.value_or(true) && !given[i].silent;
      }
    }
  } catch (const std::exception&) {  // out of memory, whether before or after it was sent
    for (const auto one : asked) {
      one->asked = true;
      one->request.unanswered = true;
    }
  }
  for (const auto one : batch) {
    if (one->held->released() || std::ranges::find(asked, one) != asked.end()) continue;
    try {
      const auto time = time_of(*one);
      one->held->is_released(one->finish ? one->finish(time) : one->held->core->free(one->request, time));
    } catch (const std::exception&) {  // out of memory: once more
      one->finish = nullptr;
      one->request.unanswered = true;
    }
  }
  {
    const MutexLock guard(mutex_, acquires_mutex);
    if (heard) silent_ = !*heard;
    std::erase_if(batch, [&](ReleasePtr one) REQUIRES(mutex_) {
      if (one->held->released()) return false;
      const bool alone = one->finish && std::ranges::find(asked, one) != asked.end();  // as is known since just now
      if (!alone) one->again = later(BootClock::now(), pause_of_vain);
      auto& to = alone ? releases_ : unfinished_;
      to.splice(to.end(), giving_back_, one);
      work_.notify_all();
      return true;
    });
  }
  // One after another: what is not told yet the engine's end tells.
  for (const auto one : batch) {
    Releases told;
    {
      const MutexLock guard(mutex_, acquires_mutex);
      told.splice(told.end(), giving_back_, one);
      ++telling_;
    }
    deliver(std::move(told.front().handler), told.front().held->what_became());
    const MutexLock guard(mutex_, acquires_mutex);
    --telling_;
    all_left_.notify_all();
  }
}

// What there was no time for is left to the renewer, or to the leases. Of what a thread still has it is told here, and
// the thread finds nobody to tell.
void Engine::Async::release_rest() noexcept {
  for (;;) {
    Releases rest;
    std::function<void(Released)> handler;
    auto became = Released::unconfirmed;
    {
      const MutexLock guard(mutex_, acquires_mutex);
      // In one look: a thread puts back what it had in vain.
      rest.splice(rest.end(), releases_);
      rest.splice(rest.end(), unfinished_);
      const auto one = std::ranges::find_if(giving_back_, [](const Release& each) { return bool(each.handler); });
      if (one != giving_back_.end() && !planted("late_release_tells")) {
        handler.swap(one->handler);
        if (one->held->released()) became = one->held->what_became();
      }
    }
    if (rest.empty() && !handler) return;
    for (auto& one : rest) release_at_last(one);
    deliver(std::move(handler), became);
  }
}

void Engine::Async::release_at_last(Release& one) noexcept {
  auto became = Released::unconfirmed;
  try {
    if (one.finish) became = one.finish(Duration{});
    else if (!one.held->released()) became = one.held->core->free(one.request, Duration{});
  } catch (const std::exception&) {  // out of memory: it ends with its lease
  }
  if (!one.held->released()) one.held->is_released(became);
  deliver(std::move(one.handler), one.held->what_became());
}

}  // namespace v0
}  // namespace dlock
