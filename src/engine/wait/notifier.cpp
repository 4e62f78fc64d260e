// The rounds of the notifier: how often waiters' rows are renewed, when it listens anew after a failure, how long it
// stays after the last waiter, and what it clears away.
#include "engine/wait/notifier.hpp"

#include "engine/backoff.hpp"
#include "engine/faults.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"
#include "types/worker.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace dlock::engine {
namespace {

// For so long after the last waiter has gone the thread stays, and listens: another one often comes soon.
constexpr Duration linger = std::chrono::seconds{5};
constexpr Duration longest_silence =
    std::chrono::seconds{10};  // a connection that listens is tried anew after failures
constexpr Duration farewell = std::chrono::seconds{1};
// Of a row of which nobody has said that it is written.
constexpr Duration shortest_commit = std::chrono::milliseconds{100}, longest_commit = std::chrono::seconds{10};
constexpr int trips_of_a_renewal = 4;

}  // namespace

struct Notifier::State : Worker {
  State(std::shared_ptr<store::LockTable> the_table, std::shared_ptr<EventQueue> news,
        std::shared_ptr<WaitQueues> the_queues, NotifierOptions the_options)
      : table(std::move(the_table)), events(std::move(news)), queues(std::move(the_queues)), options(the_options) {}

  const std::shared_ptr<store::LockTable> table;
  const std::shared_ptr<EventQueue> events;
  const std::shared_ptr<WaitQueues> queues;
  const NotifierOptions options;

  bool called GUARDED_BY(mutex) = false;
  std::shared_ptr<dialects::Listener> interruptible GUARDED_BY(mutex);  // the listener, for who calls
  struct StaleRow {
    std::string name;
    std::optional<std::string> owner;  // of a row; empty: it is the name's mark
    Instant until;                     // it is over by then
    Instant not_before{};
  };
  std::deque<StaleRow> leftovers GUARDED_BY(mutex);

  // The thread's own:
  std::shared_ptr<dialects::Listener> listener;
  Backoff silence{longest_silence};
  Instant listen_again{};
  bool deaf = false;  // there is nothing to listen to here
  Instant renew_at = Instant::max(), renew_shown_at = Instant::max();

  Instant soon() const { return later(BootClock::now(), options.request_timeout); }

  void wake() noexcept override {
    std::shared_ptr<dialects::Listener> listening;
    {
      const MutexLock guard(mutex);
      called = true;
      listening = interruptible;
    }
    changed.notify_all();
    if (listening) listening->interrupt();
  }

  // Listens if it can. What was released before it did is seen by looking again.
  void open() {
    if (!options.listen || deaf || listener || BootClock::now() < listen_again) return;
    try {
      listener = table->open_listener(soon());
      deaf = !listener;
      silence.begin_anew();
      const MutexLock guard(mutex);
      interruptible = listener;
    } catch (const std::exception& failure) { fail(failure); }
    queues->wake_all();
  }

  void fail(const std::exception& failure) {
    listen_again = later(BootClock::now(), silence.next());
    events->emit_retry(failure);
  }

  // Waits for news until `until`, and passes them on.
  void listen(Instant until) {
    if (!listener) {
      UniqueMutexLock guard(mutex);
      while (!called && !closing && BootClock::now() < until) wait(guard, until);
      called = false;
      return;
    }
    {
      // Who called while there was no listener to interrupt.
      const MutexLock guard(mutex);
      if (std::exchange(called, false) || closing) return;
    }
    try {
      const auto awaited = queues->awaited();
      queues->hear(listener->wait(awaited, until));
    } catch (const std::exception& failure) {
      {
        const MutexLock guard(mutex);
        interruptible.reset();
      }
      listener.reset();
      fail(failure);
      queues->wake_all();
    }
    const MutexLock guard(mutex);
    called = false;
  }

  // One statement for all rows of a kind. A row that has died in spite of it is told to its owner.
  void renew(WaitQueues::RowKind kind, Duration ttl, Instant& at) {
    const auto rows = queues->rows(kind);
    if (rows.empty()) {
      at = Instant::max();
      return;
    }
    const auto now = BootClock::now();
    if (at == Instant::max()) at = later(now, ttl / 4);
    if (now < at) return;
    std::vector<store::WaiterKey> keys;
    keys.reserve(rows.size());
    for (const auto& row : rows) keys.push_back({row.name, row.owner});
    try {
      const auto patience = std::max<Duration>(ttl / 4, trips_of_a_renewal * table->round_trip());
      const auto alive = table->waiting().renew_waiters(keys, ttl, std::min(soon(), later(now, patience)));
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (!alive[i]) queues->died(rows[i].waiter);
      at = later(now, ttl / 3);
    } catch (const Failure& failure) {
      events->emit_retry(failure);
      at = later(BootClock::now(), ttl / 20);
    }
  }

  void renew() {
    if (!planted("ticket_not_renewed")) renew(WaitQueues::RowKind::depended_on, options.ticket, renew_at);
    renew(WaitQueues::RowKind::for_people, row_for_people, renew_shown_at);
  }

  // The next one whose time has come: when all ends, each.
  std::optional<StaleRow> leftover() {
    const MutexLock guard(mutex);
    const auto now = closing ? Instant::max() : BootClock::now();
    const auto due =
        std::find_if(leftovers.begin(), leftovers.end(), [&](const auto& each) { return each.not_before <= now; });
    if (due == leftovers.end()) return std::nullopt;
    auto found = std::move(*due);
    leftovers.erase(due);
    return found;
  }

  bool any_left() {
    const MutexLock guard(mutex);
    return !leftovers.empty();
  }

  // False: some are left, because the database does not answer, or for later.
  bool clear_away(Deadline deadline) {
    while (auto next = leftover()) {
      auto& leftover = *next;
      if (BootClock::now() >= leftover.until) continue;
      try {
        if (leftover.owner) {
          table->waiting().remove(leftover.name, *leftover.owner, deadline);
          queues->wake_head(leftover.name);  // the next in line may have seen its ticket still
        } else if (!queues->anybody_listens(leftover.name)) {
          table->waiting().unwant(leftover.name, deadline);
        }
      } catch (const Failure& failure) {
        if (!is_transient(failure.cause()) || !leftover.owner) continue;  // a mark is over by itself in seconds
        const MutexLock guard(mutex);
        leftovers.push_back(std::move(leftover));
        return false;
      }
    }
    return !any_left();
  }

  // False: there is nothing to do any more, as far as can be seen.
  bool round(Instant& busy_until) {
    {
      const MutexLock guard(mutex);
      if (closing) return false;
    }
    const bool cleared = clear_away(soon());
    const auto now = BootClock::now();
    if (queues->anybody() || !cleared) busy_until = later(now, linger);
    {
      const MutexLock guard(mutex);
      if (closing || (now >= busy_until && !called && leftovers.empty())) return false;
    }
    open();
    renew();
    auto until = std::min({renew_at, renew_shown_at, queues->anybody() ? later(now, linger) : busy_until});
    if (!listener && options.listen && !deaf) until = std::min(until, listen_again);
    if (!cleared) until = std::min(until, later(now, std::chrono::milliseconds{100}));
    listen(until);
    return true;
  }

  void run() override {
    std::shared_ptr<dialects::Listener> last;  // closed without the mutex
    for (bool over = false; !over;) {
      auto busy_until = later(BootClock::now(), linger);
      for (bool goes_on = true; goes_on;) try {
          goes_on = round(busy_until);
        } catch (const std::exception&) {  // out of memory: those who wait look by themselves meanwhile
          pause(std::chrono::milliseconds{100});
        }
      try {
        clear_away(ends_within(farewell));
      } catch (const std::exception&) {  // they die by themselves
      }
      // Once it does not run any more it may be started anew: that thread waits for the end of this one.
      const MutexLock guard(mutex);
      over = closing || (!called && leftovers.empty());
      if (!over) continue;
      interruptible.reset();
      last.swap(listener);
      running = false;
    }
  }
};

Notifier::Notifier(std::shared_ptr<store::LockTable> table, std::shared_ptr<EventQueue> events,
                   std::shared_ptr<WaitQueues> queues, NotifierOptions options)
    : state_(std::make_shared<State>(std::move(table), std::move(events), std::move(queues), options)) {}

Notifier::~Notifier() { state_->finish(); }

void Notifier::attend() noexcept {
  if (ensure_running()) state_->wake();
}

bool Notifier::ensure_running() noexcept {
  const MutexLock guard(state_->mutex);
  if (state_->closing || state_->running) return !state_->closing;
  // Where there is no thread to be had, whoever waits looks by itself, and tries again.
  if (!state_->try_start()) state_->running = planted("listening_not_tried_again");
  return false;
}

void Notifier::remove_later(std::string_view name, std::string_view owner, bool doubtful) noexcept {
  clear_later(name, owner);
  if (!doubtful || planted("late_row_left")) return;
  for (auto in = shortest_commit; in < longest_commit; in *= 2) clear_later(name, owner, in);
}

void Notifier::unwant_later(std::string_view name) noexcept { clear_later(name, std::nullopt); }

void Notifier::clear_later(std::string_view name, std::optional<std::string_view> owner, Duration in) noexcept {
  try {
    const auto now = BootClock::now();
    const MutexLock guard(state_->mutex);
    state_->leftovers.push_back({std::string(name), owner ? std::optional<std::string>(*owner) : std::nullopt,
                                 later(now, in + state_->options.ticket), later(now, in)});
  } catch (const std::exception&) {  // out of memory: it is over by itself
    return;
  }
  attend();
}

void Notifier::close(Instant until) noexcept { state_->close(until); }

}  // namespace dlock::engine
