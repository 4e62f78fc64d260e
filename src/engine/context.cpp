// How an engine begins and ends, and when weak_durability is told; by when a question is to be answered; what is noted
// and told of a grant that begins or ends here: also that its lease is too short for the round trip.
#include "engine/context.hpp"

#include "engine/lease/refusal.hpp"
#include "engine/session_id.hpp"
#include "types/annotated_mutex.hpp"

#include <system_error>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

// What is not worth waiting for takes no longer than that, unless round trips do.
constexpr Duration least_moment = std::chrono::milliseconds{100};
// A statement that has to be prepared first takes two round trips, and not all of them take the least time.
constexpr int trips_when_unprepared = 4;
// The shortest wait takes so long at most, where the database is silent: time enough to open a connection.
constexpr Duration time_of_a_try = std::chrono::milliseconds{250};
constexpr int trips_of_a_try = 10;

Duration since(Instant begun) { return std::chrono::floor<Duration>(BootClock::now() - begun); }

// What the server was last seen to be weak in. Threads: any.
class Weaknesses {
 public:
  // What is new in it is told.
  void tell(EventQueue& events, const std::vector<std::string>& found) {
    const MutexLock guard(mutex_);
    for (const auto& weakness : found)
      if (std::find(told_.begin(), told_.end(), weakness) == told_.end())
        events.emit(Event::Kind::weak_durability, {}, {}, {}, weakness);
    told_ = found;
  }

 private:
  AnnotatedMutex mutex_;
  std::vector<std::string> told_ GUARDED_BY(mutex_);
};

}  // namespace

Context::Context(std::shared_ptr<store::LockTable> the_table, EngineOptions given, std::string the_engine_id)
    : options(std::move(given)),
      engine_id(std::move(the_engine_id)),
      table(std::move(the_table)),
      policy(options, *table),
      events(std::make_shared<EventQueue>(options.observer, options.timeouts.request,
                                          Origin{options.label, options.node})),
      timer(events),
      renewer(table, events, queues, options.timeouts.request),
      reaper(table, events,
             {options.reaper.every, options.reaper.retention, options.reaper.grace, options.timeouts.request,
              options.label, options.history}),
      notifier(table, events, queues, {options.listen, options.ticket, options.timeouts.request}),
      lingering(options.linger > Duration{}
                    ? std::make_unique<LingeringLeases>(table, queues, options.linger, options.timeouts.request)
                    : nullptr) {
  queues->on_wait([events = events](const auto& held) { events->ask(held); });
  const auto weaknesses = std::make_shared<Weaknesses>();
  table->on_reconnect([events = events, weaknesses](const auto& look) {
    events->emit(Event::Kind::reconnected, {});
    if (!events->observed()) return;
    if (const auto found = look()) weaknesses->tell(*events, *found);
  });
  weaknesses->tell(*events, table->weaknesses(later(BootClock::now(), options.timeouts.connect)));
}

Context::~Context() {
  // One time for all that ends, and not one for each after the other.
  const auto until = std::min(soon(), end_by_);
  if (lingering) lingering->close(until);
  renewer.close(until);
  reaper.close(until);
  notifier.close(until);
  events->close(until);
}

void Context::ensure_running() {
  if (running_.load(std::memory_order_acquire)) return;
  try {
    timer.start();
    renewer.start();
  } catch (const std::system_error& error) {
    if (planted("no_thread_is_no_error")) throw;
    if (planted("renewer_tried_once")) running_ = true;
    throw Error(Fault::unavailable,
                fmt::format("no thread could be started to keep a lease: {}", error.code().message()));
  }
  running_.store(true, std::memory_order_release);
}

Instant Context::soon() const noexcept { return later(BootClock::now(), options.timeouts.request); }

Instant Context::in_a_moment() const noexcept {
  constexpr std::chrono::seconds longest_look{1};
  return std::min(soon(), later(BootClock::now(), longest_look));
}

Instant Context::answer_by(Instant deadline, Instant called) const noexcept {
  const auto time = std::min<Duration>(options.timeouts.request, table->answer_time());
  return std::max({deadline, later(BootClock::now(), time), later(called, within(time_of_a_try, trips_of_a_try))});
}

Instant Context::shortly(Instant deadline) const noexcept {
  return std::min(answer_by(deadline), later(BootClock::now(), within(least_moment, trips_when_unprepared)));
}

store::Blocked Context::blocked(const Name& name, const Deadline& deadline) {
  return retry(deadline.no_later_than(soon()), [&](Deadline until) { return table->blocked(name.text(), until); });
}

void Context::hold(const std::shared_ptr<Lease>& held, const JobRef& job, Instant called) {
  const bool unnamed = held->hand_over_state.reserved > 0 || held->unnamed;
  held->taken_by(job, unnamed ? JobRef{} : job);
  if (unnamed && job && !planted("passed_on_unnamed")) job->add({weak_from_this(), held});
  watch(held);
  const auto took = since(called);
  events->counters().waited.add(took);
  if (!events->observed()) return;
  // There has to be time to be granted it, and to be answered a renewal.
  const auto terms = held->terms();
  const auto trip = table->round_trip();
  if (held->renewable() && terms.lease - terms.margin <= 2 * trip + terms.asked() / 8)
    events->emit(
        Event::Kind::trust_low, *held, held->remaining(BootClock::now()),
        fmt::format("a lease of {} us is too short to be renewed where a round trip to the database takes {} us; "
                    "choose a longer one",
                    terms.asked().count(), trip.count()));
  events->emit(Event::Kind::granted, *held, took);
}

void Context::watch(const std::shared_ptr<Lease>& held) {
  timer.watch(held);
  renewer.add(held);
}

bool Context::is_inside(const Name& name) const {
  const auto now = BootClock::now();
  return timer.any(
      [&](const Lease& held) { return held.mode() == Mode::node && held.name() == name.text() && held.valid(now); });
}

void Context::forget(const std::shared_ptr<Lease>& held) noexcept {
  held->let_go();
  if (held->first_to_count_end()) events->counters().ended.add();
  held->belongs_to_nobody();
  queues->tell_no_more(held);
  renewer.remove(held);
  timer.forget(held);
}

void Context::tell_loss(const std::shared_ptr<Lease>& held, std::string_view text) noexcept {
  events->emit_loss(held, text);
  queues->let_go_unheard(held->name());
}

void Context::lose_refused(const std::shared_ptr<Lease>& held, std::string_view what) {
  if (held->ended()) return;
  auto loss = Loss::refused;
  const auto why = why_refused(*table, *held, in_a_moment(), loss);
  if (held->lose(loss)) tell_loss(held, why.empty() ? std::string(what) : fmt::format("{}: {}", what, why));
}

void Context::tell_if_lost(const std::shared_ptr<Lease>& held) noexcept {
  if (held->valid(BootClock::now())) return;
  if (const auto loss = held->loss(); loss && held->lose(*loss)) events->emit_loss(held, in_words(*loss));
}

void Context::open_to_job(const std::shared_ptr<Lease>& held) {
  entries.open(held);
  if (const auto job = held->said().job; !job.empty()) queues->wake_job(held->name(), job);
}

void Context::tell_end(const Name& name, Instant begun, bool waited, const Said& said) {
  events->emit(waited ? Event::Kind::timed_out : Event::Kind::busy, name.text(), {}, since(begun), {}, said);
}

}  // namespace dlock::engine
