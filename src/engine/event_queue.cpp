// What is told, to all who observe: in which order a loss is counted, fired and told, and how long the end waits for
// callbacks. How many events wait for an observer: observer.cpp.
#include "engine/event_queue.hpp"

#include "types/annotated_mutex.hpp"
#include "types/failure.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

// For what is told at the very end.
constexpr Duration shortest_farewell = std::chrono::milliseconds{100};
// Where the system has no thread to give.
constexpr Duration until_again = std::chrono::milliseconds{100};

}  // namespace

// Outlives the queue where a subscription does. The mutex is taken before an observer's, and never while one is called.
struct EventQueue::State {
  AnnotatedMutex mutex;
  std::vector<std::shared_ptr<Observer>> observers GUARDED_BY(mutex);
  std::function<void()> on_delay GUARDED_BY(mutex);
  Instant ends_by GUARDED_BY(mutex) = Instant::max();

  std::atomic<std::size_t> observing{0};  // how many observers there are

  void add(std::shared_ptr<Observer> observer) {
    const MutexLock guard(mutex);
    observers.push_back(std::move(observer));
    observing.store(observers.size());
  }
  void take(const std::shared_ptr<Observer>& observer) noexcept {
    const MutexLock guard(mutex);
    std::erase(observers, observer);
    observing.store(observers.size());
  }
};

EventQueue::EventQueue(std::function<void(const Event&)> observer, Duration farewell, Origin origin)
    : farewell_(farewell), origin_(std::move(origin)), state_(std::make_shared<State>()) {
  if (observer) state_->add(std::make_shared<Observer>(std::move(observer)));
}

EventQueue::~EventQueue() {
  auto until = later(BootClock::now(), farewell_);
  std::vector<std::shared_ptr<Observer>> observers;
  {
    const MutexLock guard(state_->mutex);
    until = std::min(until, std::max(state_->ends_by, later(BootClock::now(), shortest_farewell)));
    observers.swap(state_->observers);
  }
  for (const auto& observer : observers) observer->close();
  losses_.close(until);
  hints_.close(until);
  for (const auto& observer : observers) observer->end(until);
}

void EventQueue::close(Instant until) noexcept {
  const MutexLock guard(state_->mutex);
  state_->ends_by = std::min(state_->ends_by, until);
}

std::unique_ptr<EventQueue::Registration> EventQueue::observe(std::function<void(const Event&)> observer) {
  auto added = std::make_shared<Observer>(std::move(observer));
  auto registration = std::make_unique<Registration>(state_, added);
  state_->add(std::move(added));
  return registration;
}

EventQueue::Registration::~Registration() { end(); }

bool EventQueue::Registration::end() noexcept {
  state_->take(observer_);
  return observer_->remove();
}

bool EventQueue::observed() const noexcept { return state_->observing.load(std::memory_order_relaxed) > 0; }

void EventQueue::emit(Event::Kind kind, const std::string& name, Token token, Duration took, std::string text,
                      const Said& said) noexcept {
  if (kind != Event::Kind::granted && kind != Event::Kind::lost) counters_.events.of(kind).add();
  if (!observed()) return;
  try {
    queue({kind, name, token, took, std::move(text), std::string(said.label.value_or(origin_.label)), origin_.node,
           std::string(said.job)});
  } catch (const std::exception&) {  // there is no memory for the words
    queue({kind, {}, token, took, {}, {}, {}, {}});
  }
}

void EventQueue::ask(const std::shared_ptr<Lease>& held) noexcept {
  if (held->ask()) hints_.fire_asked(held);
}

void EventQueue::emit_retry(const std::exception& failure, std::string_view what) noexcept {
  const auto* const known = dynamic_cast<const Failure*>(&failure);
  counters_.retried.of(known != nullptr ? retry_cause(known->cause()) : RetryCause::other).add();
  if (!observed()) return;
  try {
    std::string text(what);
    if (!what.empty()) text += ": ";
    emit(Event::Kind::retried, {}, {}, {}, text + failure.what());
  } catch (const std::exception&) {  // there is no memory to tell it
  }
}

void EventQueue::emit_loss(const std::shared_ptr<Lease>& held, std::string_view text) noexcept {
  if (const auto loss = held->loss()) counters_.lost.of(*loss).add();
  if (held->first_to_count_end()) counters_.ended.add();
  losses_.fire(held);
  if (!observed()) return;
  try {
    emit(Event::Kind::lost, *held, {}, std::string(text));
  } catch (const std::exception&) {  // there is no memory for the words
    emit(Event::Kind::lost, *held);
  }
}

void EventQueue::queue(const QueuedEvent& event) noexcept {
  bool delayed = false;
  std::function<void()> call;
  try {
    const MutexLock guard(state_->mutex);
    for (const auto& observer : state_->observers) {
      const auto pushed = observer->push(event);
      if (pushed.dropped) counters_.events_dropped.add();
      delayed = delayed || pushed.delayed;
    }
    if (delayed) call = state_->on_delay;
  } catch (const std::exception&) {  // no memory to ask for a thread: the next event will
  }
  if (call) call();
}

void EventQueue::on_delay(std::function<void()> call) {
  losses_.on_delay(call);
  hints_.on_delay(call);
  const MutexLock guard(state_->mutex);
  state_->on_delay = std::move(call);
}

Instant EventQueue::look_after() noexcept {
  const auto next = std::min(losses_.look_after(), hints_.look_after());
  const MutexLock guard(state_->mutex);
  bool delayed = false;
  for (const auto& observer : state_->observers) delayed = !observer->look_after() || delayed;
  return delayed ? std::min(next, later(BootClock::now(), until_again)) : next;
}

}  // namespace dlock::engine
