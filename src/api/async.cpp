// How asynchronous calls are begun, carried out and answered: which go in one statement, in which order the threads
// take what is to be done, and what becomes of all at the engine's end. Who waits behind whom: async_waiting.cpp.
#include "api/async.hpp"

#include "engine/on_behalf.hpp"
#include "types/mutant.hpp"
#include "types/pause.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <unordered_set>

namespace dlock {
inline namespace v0 {
namespace {

// Of so many that are ready some are chosen that can go together.
constexpr std::size_t most_looked_at = 256;
constexpr std::chrono::milliseconds until_memory{100};

}  // namespace

Error Engine::Async::ended() { return Error(Fault::misuse, "the engine was destroyed while this call waited on it"); }

Engine::Async::Async(std::shared_ptr<Core> core)
    : core_(std::move(core)),
      handlers_(std::make_shared<api::Handlers>(core_->options().executor)),
      most_(std::max<std::size_t>(1, core_->options().combine)) {}

// The second one that talks to the database is a help, no more.
void Engine::Async::start() {
  try {
    handlers_->prepare();
    for (auto& thread : threads_) {
      if (thread.started()) continue;
      const auto part = &thread == &threads_.front() ? &Async::watch_time : &Async::work;
      thread.start([self = shared_from_this(), part] { self->run(part); });
      ++running_;
    }
  } catch (const std::system_error& error) {
    if (threads_[1].started()) return;
    throw Error(Fault::unavailable,
                fmt::format("no thread could be started for asynchronous calls: {}", error.code().message()));
  }
}

// A thread's whole life. Where there is no memory it goes on when there is.
void Engine::Async::run(void (Async::*part)()) {
  for (bool over = false; !over;) try {
      (this->*part)();
      over = true;
    } catch (const std::exception&) { pause_until(later(BootClock::now(), until_memory), {}); }
  left();
}

void Engine::Async::left() noexcept {
  const MutexLock guard(mutex_, acquires_mutex);
  --running_;
  ended_.notify_all();
}

void Engine::Async::Stopped::operator()() const noexcept {
  if (const auto shared = async.lock()) shared->stopped(id);
}

void Engine::Async::stopped(Id id) noexcept {
  try {
    const MutexLock guard(mutex_, acquires_mutex);
    stops_.push_back(id);
    time_.notify_all();
  } catch (const std::exception&) {  // out of memory: it ends with its deadline
  }
}

void Engine::Async::acquire(const Request& request, LockHandler handler) {
  if (!handler) throw Error(Fault::misuse, "the handler is empty: there is nothing to be called");
  core_->check(request.options);
  const engine::OnBehalf behalf(request.options);
  const Request whole{request.name, behalf.options(), request.deadline, request.waits, request.stop};
  Id id = 0;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    if (closed_) throw ended();
    start();
    id = ++last_id_;
    const auto queue = queues_.find(whole.name.text());
    if (queue != queues_.end() && parks(whole, queue->second)) {
      park(id, whole, std::move(handler), queue->second, queue->first);
    } else {
      const auto acquire = std::make_shared<Acquire>(core_->acquirer(), id, whole.name,
                                                     std::make_shared<const LockOptions>(whole.options), whole.deadline,
                                                     whole.waits, BootClock::now());
      acquire->first_in_queue = whole.waits && queue == queues_.end();
      if (acquire->first_in_queue) queues_[whole.name.text()].occupied = true;
      try {
        begin(acquire, nullptr, std::move(handler));
      } catch (...) {  // out of memory: it has not begun
        if (acquire->first_in_queue) queues_.erase(whole.name.text());
        throw;
      }
    }
  }
  if (whole.stop.stop_possible()) watch_stop(id, whole.stop);
}

// Known by its number before its caller can stop it.
void Engine::Async::watch_stop(Id id, const std::stop_token& stop) noexcept {
  try {
    auto on_stop = std::make_unique<std::stop_callback<Stopped>>(stop, Stopped{weak_from_this(), id});
    const MutexLock guard(mutex_, acquires_mutex);
    if (const auto found = acquires_.find(id); found != acquires_.end()) {
      if (!found->second->answered) found->second->on_stop.swap(on_stop);
    } else if (const auto waiting = parked_.find(id); waiting != parked_.end()) {
      waiting->second.on_stop.swap(on_stop);
    }
  } catch (const std::exception&) {  // out of memory, when it has begun: it is answered without having been stopped
  }
}

void Engine::Async::begin(const AcquirePtr& acquire, OnStop on_stop, LockHandler handler) {
  acquires_.emplace(acquire->id, acquire);
  try {
    look_at(acquire->late, acquire->id);
    ready(acquire);
  } catch (...) {
    acquires_.erase(acquire->id);
    throw;
  }
  acquire->on_stop = std::move(on_stop);
  acquire->handler = std::move(handler);
}

void Engine::Async::ready(const AcquirePtr& acquire) {
  (acquire->work.begun() ? ready_ : fresh_).push_back(acquire);
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
  acquire->state = Acquire::State::resting;
  const auto due = acquire->work.rests_until();
  if (due != acquire->due) look_at(acquire->due = due, acquire->id);
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

// The first answer counts. Who comes after it gets its turn.
void Engine::Async::answer(const AcquirePtr& acquire, Result<Lock> result, Afterwards& afterwards) {
  if (acquire->answered) return;
  acquire->answered = true;
  if (const auto* error = result.error()) afterwards.broken.emplace_back(acquire, *error);
  else if (result.refused() && result.refused() != Refused::stopped) afterwards.refused.push_back(acquire);
  afterwards.gone.push_back(std::move(acquire->on_stop));
  afterwards.answers.emplace_back(std::move(acquire->handler), std::move(result));
  if (acquire->first_in_queue) next_in_line(*acquire);
}

Result<Lock> Engine::Async::result_of(Acquire& acquire, engine::Acquired acquired) const {
  if (acquired) return Lock(std::make_shared<Lock::Handle>(core_, std::move(acquired)));
  if (acquire.stop.stop_requested()) return Refused::stopped;
  return acquire.in_vain == Refused::busy && acquired.row_locked ? Refused::locked : acquire.in_vain;
}

// What can go together with the first.
std::vector<Engine::Async::AcquirePtr> Engine::Async::next_acquires() {
  std::vector<AcquirePtr> batch{std::move(fresh_.front())};
  fresh_.pop_front();
  const auto joins = [](const Acquire& one) REQUIRES(acquires_mutex) { return !one.answered && one.work.plain(); };
  if (most_ > 1 && joins(*batch.front())) {
    std::unordered_set<std::string_view> names{batch.front()->work.name().text()};
    std::vector<AcquirePtr> others;
    while (!fresh_.empty() && batch.size() < most_ && others.size() < most_looked_at) {
      auto one = std::move(fresh_.front());
      fresh_.pop_front();
      const bool taken = joins(*one) && names.insert(one->work.name().text()).second;
      (taken ? batch : others).push_back(std::move(one));
    }
    for (auto one = others.rbegin(); one != others.rend(); ++one) fresh_.push_front(std::move(*one));
  }
  for (const auto& one : batch) one->state = Acquire::State::running;
  return batch;
}

void Engine::Async::work() {
  UniqueMutexLock guard(mutex_, acquires_mutex);
  const auto nothing = [&]() REQUIRES(mutex_) {
    return fresh_.empty() && ready_.empty() && releases_.empty() && (finishing_ || unfinished_.empty());
  };
  for (;;) {
    work_.wait(guard, [&]() REQUIRES(mutex_) { return ending_ || !nothing(); });
    if (nothing()) return;
    // Each kind in turn, so that none waits for another to be done.
    switch (turn_++ % 4) {
      case 0:
        if (!releases_.empty()) {
          auto batch = next_releases();
          guard.unlock();
          give_back(std::move(batch));
          guard.lock();
        }
        break;
      case 1:
        if (!finishing_ && !unfinished_.empty()) {  // a row that is locked takes one thread, and the time of no other
          std::vector<Release> one;
          one.push_back(std::move(unfinished_.front()));
          unfinished_.pop_front();
          finishing_ = true;
          guard.unlock();
          try {
            give_back(std::move(one));
          } catch (...) {  // out of memory
            guard.lock();
            finishing_ = false;
            throw;
          }
          guard.lock();
          finishing_ = false;
          if (!unfinished_.empty()) work_.notify_one();
        }
        break;
      case 2:
        if (!fresh_.empty()) {
          auto batch = next_acquires();
          guard.unlock();
          ask(std::move(batch));
          guard.lock();
        }
        break;
      default:
        if (!ready_.empty()) {
          const auto one = std::move(ready_.front());
          ready_.pop_front();
          one->state = Acquire::State::running;
          guard.unlock();
          step(one);
          guard.lock();
        }
    }
  }
}

// What is known after one statement is told at once; the others go on one by one, whichever thread has the time.
void Engine::Async::ask(std::vector<AcquirePtr> batch) {
  if (batch.size() > 1) {
    std::vector<engine::AsyncAcquire*> all;
    all.reserve(batch.size());
    for (const auto& one : batch) all.push_back(&one->work);
    engine::AsyncAcquire::try_together(all);
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
  put_back(std::move(batch));
  step(own);
}

void Engine::Async::put_back(std::vector<AcquirePtr> batch) {
  const MutexLock guard(mutex_, acquires_mutex);
  for (auto one = batch.rbegin(); one != batch.rend(); ++one) {
    if (const auto at = (*one)->work.seen_held(); at != Instant{}) seen_held(**one, at);
    (*one)->state = Acquire::State::ready;
    fresh_.push_front(std::move(*one));
  }
  if (!batch.empty()) work_.notify_one();
}

void Engine::Async::step(const AcquirePtr& acquire) {
  std::optional<Result<Lock>> result;
  std::shared_ptr<engine::Lease> granted;
  bool unheard = false;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    unheard = acquire->answered && !acquire->work.begun();
  }
  if (unheard) acquire->work.abandon();
  else try {
      if (auto acquired = acquire->work.go_on(wake_of(acquire))) {
        granted = *acquired;
        result = result_of(*acquire, std::move(*acquired));
      }
    } catch (const Error& error) { result = error; } catch (const std::exception& error) {
      if (granted) core_->release(std::exchange(granted, nullptr), core_->options().timeouts.release);
      acquire->work.abandon();
      result = Error(Fault::unavailable, error.what());
    }
  Afterwards afterwards;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    if (!unheard && !result) return rest(acquire);
    acquire->state = Acquire::State::over;
    acquires_.erase(acquire->id);
    if (result && !acquire->answered) {
      acquire->granted = std::move(granted);
      answer(acquire, std::move(*result), afterwards);
    }
  }
  perform(std::move(afterwards));  // what was granted to nobody is released with the result
}

void Engine::Async::deliver(LockHandler handler, Result<Lock> result) noexcept {
  try {
    handlers_->post(api::bound(std::move(handler), std::move(result)));
  } catch (const std::exception&) {  // there is no memory to tell it, and the Lock, if any, is released
  }
}

void Engine::Async::perform(Afterwards afterwards) {
  for (const auto& acquire : afterwards.stopped) {
    acquire->stop.request_stop();
    const MutexLock guard(mutex_, acquires_mutex);
    if (acquire->state == Acquire::State::resting) ready(acquire);
  }
  for (auto& [name, parked] : afterwards.expired) {
    if (!parked.seen || core_->nobody_seen(name.text())) {
      look_for_itself(name, std::move(parked));
      continue;
    }
    core_->tell_timed_out(name, parked.called, *parked.options);
    afterwards.answers.emplace_back(std::move(parked.handler), Refused::timed_out);
  }
  for (const auto& acquire : afterwards.refused) acquire->work.tell_refused(acquire->in_vain == Refused::timed_out);
  for (const auto& [acquire, error] : afterwards.broken) acquire->work.tell_broken(error);
  for (auto& [handler, result] : afterwards.answers) deliver(std::move(handler), std::move(result));
}

bool Engine::Async::is_own_thread() const noexcept {
  return std::ranges::any_of(threads_, [](const Thread& thread) { return thread.is_this(); });
}

void Engine::Async::end(Instant until) noexcept {
  Afterwards afterwards;
  std::unordered_map<Id, Parked> parked;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    closed_ = true;
    parked.swap(parked_);
    for (const auto& [id, acquire] : acquires_) {
      if (!planted("async_end_silent")) answer(acquire, ended(), afterwards);
      afterwards.stopped.push_back(acquire);
    }
    queues_.clear();
  }
  for (auto& [id, one] : parked) {
    afterwards.gone.push_back(std::move(one.on_stop));
    afterwards.answers.emplace_back(std::move(one.handler), ended());
  }
  perform(std::move(afterwards));
  {
    UniqueMutexLock guard(mutex_, acquires_mutex);
    ending_ = true;
    work_.notify_all();
    time_.notify_all();
    const int own = is_own_thread() ? 1 : 0;
    ended_.wait_until(guard, countable(until), [&]() REQUIRES(mutex_) { return running_ <= own; });
    if (running_ > 0)
      for (auto& thread : threads_) thread.let_be();
  }
  for (auto& thread : threads_) thread.finish();
  release_rest();
  handlers_->finish_soon(until);
}

}  // namespace v0
}  // namespace dlock
