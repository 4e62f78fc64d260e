// How asynchronous calls are begun and answered: in which order the threads take what is to be done, and what becomes
// of all at the engine's end. How they are carried out: async_asking.cpp; who waits behind whom: async_waiting.cpp.
#include "api/async.hpp"

#include "engine/on_behalf.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <thread>

namespace dlock {
inline namespace v0 {
namespace {

// What a thread is about to tell at the engine's end is waited for so long at least.
constexpr Duration time_to_tell = std::chrono::milliseconds{500};

}  // namespace

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
void Engine::Async::run(void (Async::*part)()) noexcept {
  insist([&] { (this->*part)(); });
  left();
}

void Engine::Async::left() noexcept {
  const MutexLock guard(mutex_, acquires_mutex);
  --running_;
  all_left_.notify_all();
}

Instant Engine::Async::ends_by() const noexcept {
  const MutexLock guard(mutex_);
  return ends_by_;
}

void Engine::Async::Stopped::operator()() noexcept {
  if (const auto shared = async.lock()) shared->stopped(id);
}

void Engine::Async::stopped(std::list<Id>& id) noexcept {
  const MutexLock guard(mutex_, acquires_mutex);
  stops_.splice(stops_.end(), id);
  time_.notify_all();
}

void Engine::Async::acquire(const Request& request, LockHandler handler) {
  if (!handler) throw Error(Fault::misuse, "the handler is empty: there is nothing to be called");
  core_->check(request.options);
  const engine::OnBehalf behalf(request.options);
  const Request whole{request.name, behalf.options(), request.deadline, request.waits, request.stop};
  Id id = 0;
  {
    const MutexLock guard(mutex_, acquires_mutex);
    if (closed_) throw ended_;
    start();
    id = ++last_id_;
  }
  // What is stopped before it is known by its number is seen below: a token is stopped before it calls anybody.
  OnStop on_stop;
  if (whole.stop.stop_possible())
    on_stop = std::make_unique<std::stop_callback<Stopped>>(whole.stop, Stopped{weak_from_this(), {id}});
  AcquirePtr acquire;  // goes after the mutex is free
  const MutexLock guard(mutex_, acquires_mutex);
  if (closed_) throw ended_;
  if (whole.stop.stop_requested() && !planted("async_begins_stopped")) {
    stopped_before_.push_back(std::move(handler));
    time_.notify_all();
    return;
  }
  const auto queue = queues_.find(whole.name.text());
  if (queue != queues_.end() && parks(whole, queue->second)) return park(id, whole, queue, on_stop, handler);
  acquire =
      std::make_shared<Acquire>(core_->acquirer(), id, whole.name, std::make_shared<const LockOptions>(whole.options),
                                whole.deadline, whole.waits, BootClock::now());
  acquire->first_in_queue = whole.waits && queue == queues_.end();
  if (acquire->first_in_queue) queues_[whole.name.text()].occupied = true;
  try {
    begin(acquire, on_stop, handler);
  } catch (...) {  // out of memory: it has not begun
    if (acquire->first_in_queue) queues_.erase(whole.name.text());
    throw;
  }
}

void Engine::Async::begin(const AcquirePtr& acquire, OnStop& on_stop, LockHandler& handler) {
  Acquires one{acquire};
  acquires_.emplace(acquire->id, acquire);
  try {
    look_at(acquire->late, acquire->id);
  } catch (...) {
    acquires_.erase(acquire->id);
    throw;
  }
  acquire->place = one.begin();
  aside_.splice(aside_.end(), one);
  acquire->on_stop = std::move(on_stop);
  acquire->handler = std::exchange(handler, nullptr);
  ready(acquire);
}

// The first answer counts. Who comes after it gets its turn.
void Engine::Async::answer(const AcquirePtr& acquire, Result<Lock> result, Afterwards& afterwards) noexcept {
  if (acquire->answered) return;
  acquire->answered = true;
  if (const auto* error = result.error()) afterwards.broken.emplace_back(acquire, *error);
  else if (result.refused() && result.refused() != Refused::stopped) afterwards.refused.push_back(acquire);
  afterwards.gone.push_back(std::move(acquire->on_stop));
  afterwards.answers.emplace_back(std::exchange(acquire->handler, nullptr), std::move(result));
  if (acquire->first_in_queue) next_in_line(*acquire);
}

void Engine::Async::Afterwards::make_room() {
  const auto in = [](auto& all) {
    if (all.size() == all.capacity()) all.reserve(std::max<std::size_t>(1, 2 * all.size()));
  };
  in(answers);
  in(gone);
  in(stopped);
  in(refused);
  in(broken);
  in(expired);
}

void Engine::Async::work() {
  UniqueMutexLock guard(mutex_, acquires_mutex);
  for (;;) {
    for (;;) {
      if (!fresh_.empty() || !ready_.empty() || releases_wait(BootClock::now())) break;
      if (ending_ && unfinished_.empty()) return;
      const bool again = !finishing_ && !unfinished_.empty();
      work_.wait_until(guard, countable(again ? unfinished_.front().again : Instant::max()));
    }
    // Each kind in turn, so that none waits for another to be done.
    switch (turn_++ % 4) {
      case 0:
        if (!releases_.empty()) {
          auto batch = next_releases(releases_);
          guard.unlock();
          give_back(std::move(batch));
          guard.lock();
        }
        break;
      case 1:
        // Rows that are locked take one thread, and the time of no other.
        if (!finishing_ && !unfinished_.empty() && unfinished_.front().again <= BootClock::now()) {
          auto batch = next_releases(unfinished_);
          finishing_ = true;
          guard.unlock();
          give_back(std::move(batch));
          guard.lock();
          finishing_ = false;
          work_.notify_all();
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
          auto one = ready_.front();
          aside_.splice(aside_.end(), ready_, one->place);
          one->state = Acquire::State::running;
          guard.unlock();
          step(one);
          one = nullptr;
          guard.lock();
        }
    }
  }
}

void Engine::Async::perform(Afterwards afterwards) noexcept {
  for (const auto& acquire : afterwards.stopped) {
    acquire->stop.request_stop();
    const MutexLock guard(mutex_, acquires_mutex);
    if (acquire->state == Acquire::State::resting) ready(acquire);
  }
  for (auto& [name, parked] : afterwards.expired) {
    if (!parked.seen || core_->nobody_seen(name.text())) {
      look_for_itself(name, parked);
      continue;
    }
    core_->tell_timed_out(name, parked.called, *parked.options);
    deliver(std::move(parked.handler), Result<Lock>(Refused::timed_out));
  }
  try {
    for (const auto& acquire : afterwards.refused) acquire->work.tell_refused(acquire->in_vain == Refused::timed_out);
    for (const auto& [acquire, error] : afterwards.broken) acquire->work.tell_broken(error);
  } catch (const std::exception&) {  // out of memory: the observers are not told
  }
  for (auto& [handler, result] : afterwards.answers) deliver(std::move(handler), std::move(result));
}

bool Engine::Async::is_own_thread() const noexcept {
  return std::ranges::any_of(threads_, [](const Thread& thread) { return thread.is_this(); });
}

void Engine::Async::end_all(Afterwards& afterwards) {
  closed_ = true;
  on_stops(afterwards);
  while (!parked_.empty()) {
    afterwards.make_room();
    auto one = unpark(parked_.begin()->first);
    afterwards.gone.push_back(std::move(one.on_stop));
    afterwards.answers.emplace_back(std::move(one.handler), ended_);
  }
  for (const auto& [id, acquire] : acquires_) {
    afterwards.make_room();
    if (!planted("async_end_silent")) answer(acquire, ended_, afterwards);
    afterwards.stopped.push_back(acquire);
  }
  queues_.clear();
}

void Engine::Async::end(Instant until) noexcept {
  {
    const MutexLock guard(mutex_);
    ends_by_ = until;
  }
  Afterwards afterwards;
  insist([&] {
    const MutexLock guard(mutex_, acquires_mutex);
    end_all(afterwards);
  });
  perform(std::move(afterwards));
  {
    UniqueMutexLock guard(mutex_, acquires_mutex);
    closed_ = ending_ = true;
    work_.notify_all();
    time_.notify_all();
    const int own = is_own_thread() ? 1 : 0;
    all_left_.wait_until(guard, countable(until), [&]() REQUIRES(mutex_) { return running_ <= own; });
    if (running_ > 0)
      for (auto& thread : threads_) thread.let_be();
  }
  for (auto& thread : threads_) thread.finish();
  release_rest();
  {
    UniqueMutexLock guard(mutex_, acquires_mutex);
    const int own = is_own_thread() ? 1 : 0;
    all_left_.wait_until(guard, countable(std::max(until, later(BootClock::now(), time_to_tell))),
                         [&]() REQUIRES(mutex_) { return telling_ <= own; });
  }
  handlers_->finish_soon(until);
}

}  // namespace v0
}  // namespace dlock
