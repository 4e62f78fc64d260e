// How asynchronous acquires are carried out: which go in one statement, what a step brings, and when one rests.
#include "api/async.hpp"

#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace dlock {
inline namespace v0 {
namespace {

// Of so many that are ready some are chosen that can go together.
constexpr std::size_t most_looked_at = 256;

}  // namespace

void Engine::Async::ready(const AcquirePtr& acquire) noexcept {
  auto& line = acquire->work.begun() ? ready_ : fresh_;
  line.splice(line.end(), aside_, acquire->place);
  acquire->state = Acquire::State::ready;
  acquire->news = false;
  work_.notify_one();
}

// It is known that somebody has it, so that out of time is an answer.
void Engine::Async::seen_held(Acquire& acquire, Instant at) {
  acquire.seen = at;
  if (const auto queue = queues_.find(acquire.work.name().text()); acquire.first_in_queue && queue != queues_.end())
    queue->second.seen = true;
}

void Engine::Async::rest(const AcquirePtr& acquire) {
  if (const auto at = acquire->work.seen_held(); at != Instant{}) seen_held(*acquire, at);
  if (acquire->news || acquire->answered) return ready(acquire);
  const auto due = acquire->work.rests_until();
  if (due != acquire->due) look_at(due, acquire->id);
  acquire->due = due;
  acquire->state = Acquire::State::resting;
}

Engine::Async::Wake Engine::Async::wake_of(const AcquirePtr& acquire) {
  return [async = weak_from_this(), one = std::weak_ptr<Acquire>(acquire)] {
    const auto self = async.lock();
    const auto resting = one.lock();
    if (!self || !resting) return;
    const MutexLock guard(self->mutex_, acquires_mutex);
    if (resting->state == Acquire::State::resting) self->ready(resting);
    else resting->news = true;
  };
}

Result<Lock> Engine::Async::result_of(Acquire& acquire, const engine::Acquired& acquired) const {
  if (acquired) return Lock(std::make_shared<Lock::Handle>(core_, acquired));
  if (acquire.stop.stop_requested()) return Refused::stopped;
  return acquire.in_vain == Refused::busy && acquired.row_locked ? Refused::locked : acquire.in_vain;
}

// What can go together with the first.
std::vector<Engine::Async::AcquirePtr> Engine::Async::next_acquires() {
  std::vector<AcquirePtr> batch;
  batch.reserve(std::min(most_, fresh_.size()));
  const auto take = [&](Acquires::iterator one) REQUIRES(mutex_, acquires_mutex) {
    aside_.splice(aside_.end(), fresh_, one);
    (*one)->state = Acquire::State::running;
    batch.push_back(*one);
  };
  const auto joins = [](const Acquire& one) REQUIRES(acquires_mutex) { return !one.answered && one.work.plain(); };
  take(fresh_.begin());
  if (most_ == 1 || !joins(*batch.front())) return batch;
  try {
    std::unordered_set<std::string_view> names{batch.front()->work.name().text()};
    std::size_t others = 0;
    for (auto one = fresh_.begin(); one != fresh_.end() && batch.size() < most_ && others < most_looked_at;) {
      const auto next = std::next(one);
      if (joins(**one) && names.insert((*one)->work.name().text()).second) take(one);
      else ++others;
      one = next;
    }
  } catch (const std::exception&) {  // out of memory: those that were found until then
  }
  return batch;
}

// What is known after one statement is told at once; the others go on one by one, whichever thread has the time.
void Engine::Async::ask(std::vector<AcquirePtr> batch) noexcept {
  if (batch.size() > 1) {
    try {
      std::vector<engine::AsyncAcquire*> all;
      all.reserve(batch.size());
      for (const auto& one : batch) all.push_back(&one->work);
      engine::AsyncAcquire::try_together(all);
    } catch (const std::exception&) {  // out of memory: each asks for itself
    }
    for (auto& one : batch)
      if (one->work.answered()) {
        step(one);
        one.reset();
      }
    std::erase(batch, nullptr);
    if (batch.empty()) return;
  }
  const auto own = std::move(batch.front());
  batch.erase(batch.begin());
  put_back(batch);
  step(own);
}

void Engine::Async::put_back(const std::vector<AcquirePtr>& batch) noexcept {
  const MutexLock guard(mutex_, acquires_mutex);
  for (auto one = batch.rbegin(); one != batch.rend(); ++one) {
    if (const auto at = (*one)->work.seen_held(); at != Instant{}) seen_held(**one, at);
    (*one)->state = Acquire::State::ready;
    fresh_.splice(fresh_.begin(), aside_, (*one)->place);
  }
  if (!batch.empty()) work_.notify_one();
}

void Engine::Async::step(const AcquirePtr& acquire) noexcept {
  std::optional<Result<Lock>> result;
  engine::Acquired granted;
  bool unheard = false;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    unheard = acquire->answered && !acquire->work.begun();
  }
  if (unheard) acquire->work.abandon();
  else try {
      if (auto acquired = acquire->work.go_on(wake_of(acquire))) {
        granted = std::move(*acquired);
        if (!insist([&] { result = result_of(*acquire, granted); })) result = ended_;  // the lease ends by itself
      }
    } catch (const Error& error) { result = error; } catch (const std::exception& error) {
      acquire->work.abandon();
      if (!insist([&] { result = Error(Fault::unavailable, error.what()); })) result = ended_;
    }
  Afterwards afterwards;
  insist([&] {
    const MutexLock guard(mutex_, acquires_mutex);
    if (!unheard && !result) return rest(acquire);
    afterwards.make_room();
    acquire->state = Acquire::State::over;
    acquires_.erase(acquire->id);
    aside_.erase(acquire->place);
    if (!result || acquire->answered) return;
    acquire->granted = std::move(granted);
    answer(acquire, std::move(*result), afterwards);
  });
  perform(std::move(afterwards));  // what was granted to nobody is released with the result
}

}  // namespace v0
}  // namespace dlock
