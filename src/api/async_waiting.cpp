// Who waits behind whom in asynchronous calls, and when time is up.
#include "api/async.hpp"

#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <algorithm>
#include <functional>
#include <optional>

namespace dlock {
inline namespace v0 {
namespace {

bool alike(const LockOptions& one, const LockOptions& other) {
  return one.mode == other.mode && one.permits == other.permits && one.limit == other.limit &&
         one.lease == other.lease && one.at_least == other.at_least && one.max_hold == other.max_hold &&
         one.delay_after_loss == other.delay_after_loss && one.renew_every == other.renew_every &&
         one.renew == other.renew && one.reentrance == other.reentrance && one.fairness == other.fairness &&
         one.job == other.job && one.label == other.label && one.metadata == other.metadata;
}

}  // namespace

// Behind others who want nothing that they have to be in line for themselves.
bool Engine::Async::parks(const Request& request, WaitQueue& queue) const {
  const auto& defaults = core_->options();
  return request.waits && queue.occupied && request.options.job.empty() &&
         request.options.fairness.value_or(defaults.fairness) == Fairness::barging &&
         request.options.reentrance.value_or(defaults.reentrance) != Reentrance::node;
}

void Engine::Async::park(Id id, const Request& request, LockHandler handler, WaitQueue& queue,
                         const std::string& name) {
  if (!queue.options || !alike(*queue.options, request.options))
    queue.options = std::make_shared<const LockOptions>(request.options);
  parked_.emplace(id, Parked{id, std::move(handler), queue.options, request.deadline, BootClock::now(), &name});
  // What has left long ago takes no room.
  if (queue.order.size() > 2 * queue.parked + 16)
    std::erase_if(queue.order, [&](Id one) REQUIRES(mutex_) { return !parked_.contains(one); });
  try {
    look_at(request.deadline, id);
    queue.order.push_back(id);
  } catch (...) {  // out of memory: it has not begun
    parked_.erase(id);
    throw;
  }
  ++queue.parked;
}

Engine::Async::Parked Engine::Async::unpark(Id id) {
  const auto found = parked_.find(id);
  auto parked = std::move(found->second);
  parked_.erase(found);
  auto& queue = queues_.find(*parked.name)->second;
  --queue.parked;
  parked.seen = queue.seen;
  return parked;
}

void Engine::Async::look_at(Instant due, Id id) {
  if (due == Instant::max()) return;
  // What was over long before its time takes no room.
  if (dues_.size() > 2 * (parked_.size() + 2 * acquires_.size()) + 64) {
    std::erase_if(dues_, [&](const Due& one) REQUIRES(mutex_, acquires_mutex) { return !still_due(one); });
    std::ranges::make_heap(dues_, std::greater{});
  }
  const auto before = next_due();
  dues_.emplace_back(due, id);
  std::ranges::push_heap(dues_, std::greater{});
  if (!before || due < before->first) time_.notify_all();
}

bool Engine::Async::still_due(const Due& due) const {
  if (const auto parked = parked_.find(due.second); parked != parked_.end())
    return parked->second.deadline == due.first;
  const auto found = acquires_.find(due.second);
  return found != acquires_.end() && (found->second->due == due.first || found->second->late == due.first);
}

std::optional<Engine::Async::Due> Engine::Async::next_due() const {
  return dues_.empty() ? std::nullopt : std::optional(dues_.front());
}

void Engine::Async::next_in_line(Acquire& before) {
  if (planted("async_line_stands")) return;
  const auto& name = before.work.name();
  const auto found = queues_.find(name.text());
  if (found == queues_.end()) return;
  auto& queue = found->second;
  queue.occupied = false;
  // Who shares the name, or has a permit of it, keeps nobody out by that: the next one looks at once.
  auto shut = before.granted && (before.granted->mode() == Mode::exclusive || planted("sharer_shuts")) ? before.granted
                                                                                                       : nullptr;
  const auto seen = shut ? BootClock::now() : before.seen;
  queue.seen = seen != Instant{};
  while (!queue.order.empty() && !parked_.contains(queue.order.front())) queue.order.pop_front();
  if (queue.order.empty() || closed_) {
    if (queue.parked == 0) queues_.erase(found);
    return;
  }
  const auto id = queue.order.front();
  queue.order.pop_front();
  auto parked = unpark(id);
  const auto acquire =
      std::make_shared<Acquire>(core_->acquirer(), id, name, parked.options, parked.deadline, true, parked.called);
  acquire->work.wait_at_once(std::move(shut));
  acquire->seen = seen;
  acquire->first_in_queue = queue.occupied = true;
  begin(acquire, std::move(parked.on_stop), std::move(parked.handler));
}

void Engine::Async::watch_time() {
  UniqueMutexLock guard(mutex_, acquires_mutex);
  while (!ending_) {
    Afterwards afterwards;
    on_stops(afterwards);
    on_time(BootClock::now(), afterwards);
    if (!afterwards.answers.empty() || !afterwards.stopped.empty() || !afterwards.expired.empty()) {
      guard.unlock();
      perform(std::move(afterwards));
      guard.lock();
      continue;
    }
    const auto next = next_due();
    time_.wait_until(guard, countable(next ? next->first : Instant::max()), [&]() REQUIRES(mutex_, acquires_mutex) {
      return ending_ || !stops_.empty() || next_due() != next;
    });
  }
}

void Engine::Async::on_stops(Afterwards& afterwards) {
  for (const auto id : std::exchange(stops_, {})) {
    if (parked_.contains(id)) {
      auto parked = unpark(id);
      afterwards.gone.push_back(std::move(parked.on_stop));
      afterwards.answers.emplace_back(std::move(parked.handler), Refused::stopped);
    } else if (const auto found = acquires_.find(id); found != acquires_.end() && !found->second->answered) {
      const auto acquire = found->second;
      answer(acquire, Refused::stopped, afterwards);
      afterwards.stopped.push_back(acquire);
    }
  }
}

void Engine::Async::on_time(Instant now, Afterwards& afterwards) {
  while (!dues_.empty() && dues_.front().first <= now) {
    const auto [due, id] = dues_.front();
    std::ranges::pop_heap(dues_, std::greater{});
    dues_.pop_back();
    if (const auto parked = parked_.find(id); parked != parked_.end()) {
      const Name name(*parked->second.name);
      afterwards.expired.emplace_back(name, unpark(id));
      continue;
    }
    const auto found = acquires_.find(id);
    if (found == acquires_.end()) continue;
    const auto acquire = found->second;
    if (now >= acquire->late && !acquire->answered && !planted("async_answer_waits")) {
      answer(acquire,
             engine::AsyncAcquire::still_held(acquire->seen, now)
                 ? Result<Lock>(acquire->in_vain)
                 : Result<Lock>(Error(Fault::timeout, "the database has not answered in time")),
             afterwards);
      afterwards.stopped.push_back(acquire);
    } else if (due == acquire->due) {
      acquire->due = Instant::max();  // who is on the way to its rest is looked at again then
      if (acquire->state == Acquire::State::resting) ready(acquire);
    }
  }
}

// Its time is up, and nobody was seen who holds what it has waited for, which is no answer.
void Engine::Async::look_for_itself(const Name& name, Parked parked) {
  const auto acquire = std::make_shared<Acquire>(core_->acquirer(), parked.id, name, parked.options, parked.deadline,
                                                 true, parked.called);
  acquire->work.try_at_last();
  {
    const MutexLock guard(mutex_, acquires_mutex);
    if (!closed_) return begin(acquire, std::move(parked.on_stop), std::move(parked.handler));
  }
  deliver(std::move(parked.handler), ended());
}

void Engine::Async::count(std::map<std::string, std::size_t, std::less<>>& waiting) const {
  const MutexLock guard(mutex_, acquires_mutex);
  for (const auto& [name, queue] : queues_)
    if (queue.parked > 0) waiting[name] += queue.parked;
}

}  // namespace v0
}  // namespace dlock
