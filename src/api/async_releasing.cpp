// How asynchronous releases are carried out, many in one statement.
#include "api/async.hpp"

#include <deque>
#include <exception>
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

void Engine::Async::release(std::shared_ptr<Lock::Handle>& held, std::function<void(Released)> handler) {
  const MutexLock guard(mutex_, acquires_mutex);
  if (closed_) throw ended();
  start();
  releases_.push_back({held, std::move(handler)});
  held = nullptr;
  work_.notify_one();
}

void Engine::Async::give_back(std::vector<Release> batch) {
  const auto timeout = core_->options().timeouts.release;
  std::vector<std::shared_ptr<engine::Lease>> held;
  std::vector<Release*> asked;
  held.reserve(batch.size());
  asked.reserve(batch.size());
  for (auto& one : batch) {
    if (one.finish) {
      one.held->is_released(one.finish(timeout));
    } else if (!one.held->released() && one.held->core == core_) {
      held.push_back(one.held->held);
      asked.push_back(&one);
    }
  }
  if (!held.empty()) {
    const auto given = core_->release_together(held, timeout);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].end) asked[i]->held->is_released(*given[i].end);
      asked[i]->finish = given[i].finish;
      asked[i]->locked = given[i].locked;
    }
  }
  std::vector<Release> rest;
  for (auto& one : batch) {
    if (!one.held->released() && one.held->core != core_)
      one.held->is_released(one.held->core->release(one.held->held, timeout));
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
  std::deque<Release> rest;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    rest.swap(releases_);
    for (auto& one : unfinished_) rest.push_back(std::move(one));
    unfinished_.clear();
  }
  for (auto& one : rest) {
    auto became = Released::unconfirmed;
    try {
      if (one.finish) became = one.finish(Duration{});
      else if (!one.held->released()) became = one.held->core->release(one.held->held, Duration{});
    } catch (const std::exception&) {  // out of memory: it ends with its lease
    }
    if (!one.held->released()) one.held->is_released(became);
    deliver(std::move(one.handler), one.held->what_became());
  }
}

}  // namespace v0
}  // namespace dlock
