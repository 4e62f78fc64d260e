// Who waits behind whom in asynchronous calls, and when time is up.
#include "api/async.hpp"

#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

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
  return request.waits && (queue.occupied || queue.parked > 0) && request.options.job.empty() &&
         request.options.fairness.value_or(defaults.fairness) == Fairness::barging &&
         request.options.reentrance.value_or(defaults.reentrance) != Reentrance::node;
}

void Engine::Async::park(Id id, const Request& request, const WaitQueues::iterator& found, OnStop& on_stop,
                         LockHandler& handler) {
  auto& queue = found->second;
  if (!queue.options || !alike(*queue.options, request.options))
    queue.options = std::make_shared<const LockOptions>(request.options);
  // What has left long ago takes no room.
  if (queue.order.size() > 2 * queue.parked + 16)
    std::erase_if(queue.order, [&](Id one) REQUIRES(mutex_) { return !parked_.contains(one); });
  auto& parked = parked_.emplace(id, Parked{id, {}, queue.options, request.deadline, BootClock::now(), &found->first})
                     .first->second;
  try {
    look_at(request.deadline, id);
    queue.order.push_back(id);
  } catch (...) {  // out of memory: it has not begun
    parked_.erase(id);
    throw;
  }
  ++queue.parked;
  parked.on_stop = std::move(on_stop);
  parked.handler = std::exchange(handler, nullptr);
}

Engine::Async::Parked Engine::Async::unpark(Id id) noexcept {
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

void Engine::Async::next_in_line(Acquire& before) noexcept {
  if (planted("async_line_stands")) return;
  const auto found = queues_.find(before.work.name().text());
  if (found == queues_.end()) return;
  auto& queue = found->second;
  queue.occupied = false;
  // Who shares the name, or has a permit of it, keeps nobody out by that: the next one looks at once.
  queue.shut = before.granted && (before.granted->mode() == Mode::exclusive || planted("sharer_shuts")) ? before.granted
                                                                                                        : nullptr;
  queue.seen_at = queue.shut ? BootClock::now() : before.seen;
  queue.seen = queue.seen_at != Instant{};
  promote(found);
}

// Where there is no memory for it the next one stays the next one, and is looked at again.
void Engine::Async::promote(const WaitQueues::iterator& found) noexcept {
  auto& queue = found->second;
  while (!queue.order.empty() && !parked_.contains(queue.order.front())) queue.order.pop_front();
  if (queue.order.empty() || closed_) {
    if (queue.parked == 0) queues_.erase(found);
    return;
  }
  const auto id = queue.order.front();
  auto& parked = parked_.find(id)->second;
  try {
    const auto acquire = std::make_shared<Acquire>(core_->acquirer(), id, Name(found->first), parked.options,
                                                   parked.deadline, true, parked.called);
    acquire->work.wait_at_once(queue.shut);
    acquire->seen = queue.seen_at;
    acquire->first_in_queue = true;
    begin(acquire, parked.on_stop, parked.handler);
  } catch (const std::exception&) {
    promotes_at_ = later(BootClock::now(), api::until_memory);
    time_.notify_all();
    return;
  }
  queue.occupied = true;
  queue.shut = nullptr;
  queue.order.pop_front();
  unpark(id);
}

void Engine::Async::promote_late(Instant now) noexcept {
  if (now < promotes_at_) return;
  promotes_at_ = Instant::max();
  for (auto queue = queues_.begin(); queue != queues_.end();) {
    const auto one = queue++;
    if (!one->second.occupied) promote(one);
  }
}

// Whatever was begun before there was no more memory is performed.
void Engine::Async::watch_time() {
  UniqueMutexLock guard(mutex_, acquires_mutex);
  while (!ending_) {
    Afterwards afterwards;
    auto again = Instant::max();
    const auto now = BootClock::now();
    promote_late(now);
    try {
      on_stops(afterwards);
      on_time(now, afterwards);
    } catch (const std::exception&) { again = later(now, api::until_memory); }
    if (!afterwards.empty()) {
      guard.unlock();
      perform(std::move(afterwards));
      guard.lock();
      continue;
    }
    const auto next = next_due();
    const bool short_of_memory = again != Instant::max();
    const auto until = std::min({again, promotes_at_, next && !short_of_memory ? next->first : Instant::max()});
    time_.wait_until(guard, countable(until), [&]() REQUIRES(mutex_, acquires_mutex) {
      if (ending_) return true;
      if (short_of_memory) return false;
      return !stops_.empty() || !stopped_before_.empty() || next_due() != next || promotes_at_ < until;
    });
  }
}

void Engine::Async::on_stops(Afterwards& afterwards) {
  while (!stopped_before_.empty()) {
    afterwards.make_room();
    afterwards.answers.emplace_back(std::move(stopped_before_.front()), Refused::stopped);
    stopped_before_.pop_front();
  }
  while (!stops_.empty()) {
    afterwards.make_room();
    const auto id = stops_.front();
    stops_.pop_front();
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
    afterwards.make_room();
    const auto [due, id] = dues_.front();
    const auto parked = parked_.find(id);
    const auto found = acquires_.find(id);
    std::optional<Name> name;
    std::optional<Result<Lock>> late;
    if (parked != parked_.end()) {
      name.emplace(*parked->second.name);
    } else if (found != acquires_.end() && now >= found->second->late && !found->second->answered &&
               !planted("async_answer_waits")) {
      if (engine::AsyncAcquire::still_held(found->second->seen, now)) late = found->second->in_vain;
      else late = Error(Fault::timeout, "the database has not answered in time");
    }
    // From here on nothing takes memory.
    std::ranges::pop_heap(dues_, std::greater{});
    dues_.pop_back();
    if (name) {
      afterwards.expired.emplace_back(std::move(*name), unpark(id));
      continue;
    }
    if (found == acquires_.end()) continue;
    const auto acquire = found->second;
    if (late) {
      answer(acquire, std::move(*late), afterwards);
      afterwards.stopped.push_back(acquire);
    } else if (due == acquire->due) {
      acquire->due = Instant::max();  // who is on the way to its rest is looked at again then
      if (acquire->state == Acquire::State::resting) ready(acquire);
    }
  }
}

// Its time is up, and nobody was seen who holds what it has waited for, which is no answer.
void Engine::Async::look_for_itself(const Name& name, Parked& parked) noexcept {
  bool begun = false;
  insist([&] {
    const auto acquire = std::make_shared<Acquire>(core_->acquirer(), parked.id, name, parked.options, parked.deadline,
                                                   true, parked.called);
    acquire->work.try_at_last();
    const MutexLock guard(mutex_, acquires_mutex);
    if (closed_) return;
    begin(acquire, parked.on_stop, parked.handler);
    begun = true;
  });
  if (!begun) deliver(std::move(parked.handler), Result<Lock>(ended_));
}

void Engine::Async::count(std::map<std::string, std::size_t, std::less<>>& waiting) const {
  const MutexLock guard(mutex_, acquires_mutex);
  for (const auto& [name, queue] : queues_)
    if (queue.parked > 0) waiting[name] += queue.parked;
}

}  // namespace v0
}  // namespace dlock
