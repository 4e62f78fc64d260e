// How asynchronous releases are carried out, many in one statement.
#include "api/async.hpp"

#include "types/mutant.hpp"

#include <exception>
#include <list>
#include <utility>

namespace dlock {
inline namespace v0 {

// Those that have something to finish go alone.
std::vector<Engine::Async::Release> Engine::Async::next_releases() {
  std::vector<Release> batch;
  while (!releases_.empty() && batch.size() < most_ && (batch.empty() || !releases_.front().finish)) {
    batch.push_back(std::move(releases_.front()));
    releases_.pop_front();
    if (batch.back().finish) break;
  }
  return batch;
}

// Who releases is out of it when this returns, whenever the row is freed. Nothing is told on its thread.
void Engine::Async::release(std::shared_ptr<Lock::Handle>& held, std::function<void(Released)> handler) {
  {
    const MutexLock guard(mutex_, acquires_mutex);
    if (closed_) throw ended();
    start();
  }
  std::list<Release> alone;
  alone.push_back({held, engine::ReleaseRequest{held->held}, std::move(handler)});
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

void Engine::Async::give_back(std::vector<Release> batch) {
  const auto timeout = core_->options().timeouts.release;
  std::vector<engine::ReleaseRequest> requests;
  std::vector<Release*> asked;
  requests.reserve(batch.size());
  asked.reserve(batch.size());
  for (auto& one : batch) {
    if (one.finish) {
      one.held->is_released(one.finish(timeout));
    } else if (!one.held->released() && one.held->core == core_) {
      requests.push_back(one.request);
      asked.push_back(&one);
    }
  }
  if (!requests.empty()) {
    const auto given = core_->free_together(requests, timeout);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].end) asked[i]->held->is_released(*given[i].end);
      asked[i]->finish = given[i].finish;
      asked[i]->locked = given[i].locked;
    }
  }
  std::vector<Release> rest;
  for (auto& one : batch) {
    if (!one.held->released() && one.held->core != core_)
      one.held->is_released(one.held->core->free(one.request, timeout));
    if (one.held->released()) deliver(std::move(one.handler), one.held->what_became());
    else rest.push_back(std::move(one));
  }
  const MutexLock guard(mutex_, acquires_mutex);
  for (auto& one : rest) (one.locked ? unfinished_ : releases_).push_back(std::move(one));
  if (!rest.empty()) work_.notify_all();
}

void Engine::Async::deliver(std::function<void(Released)> handler, Released released) noexcept {
  if (!handler) return;
  try {
    handlers_->post(api::bound(std::move(handler), released));
  } catch (const std::exception&) {  // there is no memory to tell it
  }
}

// What there was no time for is left to the renewer, or to the leases.
void Engine::Async::release_rest() noexcept {
  std::list<Release> rest;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    rest.splice(rest.end(), releases_);
    rest.splice(rest.end(), unfinished_);
  }
  for (auto& one : rest) release_at_last(one);
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
