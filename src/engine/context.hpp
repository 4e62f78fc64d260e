// What all parts of an engine share: its lock table, its threads, and how a question is put until there is an answer.
#pragma once

#include "engine/backoff.hpp"
#include "engine/event_queue.hpp"
#include "engine/faults.hpp"
#include "engine/lease/lease.hpp"
#include "engine/lease/lease_policy.hpp"
#include "engine/lease/lease_renewer.hpp"
#include "engine/lease/lingering_leases.hpp"
#include "engine/lease/reentrance_table.hpp"
#include "engine/lease/trust_timer.hpp"
#include "engine/reaper.hpp"
#include "engine/wait/notifier.hpp"
#include "engine/wait/wait_queues.hpp"
#include "store/lock_table.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/pause.hpp"
#include "types/retry.hpp"

#include <dlock/engine.hpp>
#include <dlock/error.hpp>
#include <dlock/options.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace dlock::engine {

// Threads: any. Owns: the table's connections and all threads of an engine, which it ends at one time.
// Made by std::make_shared: a job that waits keeps weak shares of the engines whose rows name it.
class Context : public std::enable_shared_from_this<Context> {
 public:
  // `options` are complete and valid. `engine_id`: the first 16 digits of the actor of all its grants.
  Context(std::shared_ptr<store::LockTable> table, EngineOptions options, std::string engine_id);
  ~Context();  // waits for statements that are under way, all at the same time: at most timeouts.request
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // One time for the end of all, where somebody has begun to wait for it before.
  void end_by(Instant until) noexcept { end_by_ = until; }
  // A lease is worth nothing without the threads that renew it and watch its trust: they are there before it is asked
  // for.
  void ensure_running();

  // By when an answer is due.
  Instant soon() const noexcept;
  // By then, where somebody waits to be told something that is decided already: why it is so.
  Instant in_a_moment() const noexcept;
  // A statement that leaves just before its caller's deadline still gets time for its answer: cutting it off would turn
  // a clear answer into a doubtful one. The first one gets a little more: nothing is known yet. `called`: when.
  Instant answer_by(Instant deadline, Instant called = {}) const noexcept;
  // For what is not worth waiting for.
  Instant shortly(Instant deadline) const noexcept;
  // `least`, or as long as so many round trips take.
  Duration within(Duration least, int round_trips) const noexcept {
    return std::max<Duration>(least, round_trips * table->round_trip());
  }

  // Puts a question until it is answered, the deadline has passed, a stop is asked for, or asking again is useless. One
  // attempt takes at most timeouts.request, so that a connection that hangs does not use up a long wait. What is thrown
  // names the cause if any attempt was told it, though the last was not even sent.
  template <class Call>
  auto retry(const Deadline& deadline, Doubt& doubt, Call ask) -> decltype(ask(deadline));
  template <class Call>
  auto retry(const Deadline& deadline, Call ask) -> decltype(ask(deadline)) {
    Doubt doubt;
    return retry(deadline, doubt, std::move(ask));
  }
  // Likewise for what changes nothing. Where it cannot be asked because of what others have locked: throws
  // Error{timeout}, which says what that is.
  template <class Call>
  auto ask_unless_locked(const Name& name, const Deadline& deadline, Call ask) -> decltype(ask(deadline));
  // What is in the way of a name whose row could not be had.
  store::Blocked blocked(const Name& name, const Deadline& deadline);

  // A grant begins: it is kept, watched, counted and told of.
  void hold(const std::shared_ptr<Lease>& held, const JobRef& job, Instant called);
  // Has the grant renewed, and its end told, by what its terms are now.
  void watch(const std::shared_ptr<Lease>& held);
  void forget(const std::shared_ptr<Lease>& held) noexcept;
  // Whether an entry of our node into the name is held by this engine: then a further one waits for nobody.
  bool is_inside(const Name& name) const;
  // Of a lease that whoever changed it found lost: who waits for it here is not told by its release any more.
  void tell_loss(const std::shared_ptr<Lease>& held, std::string_view text) noexcept;
  // Likewise where the database has refused what it was asked: why is looked into for a moment.
  void lose_refused(const std::shared_ptr<Lease>& held, std::string_view what);
  // Whoever lets go of it may be the first to look at it after its end.
  void tell_if_lost(const std::shared_ptr<Lease>& held) noexcept;
  // A grant was made to this thread or its job: threads of that job that wait for the name may enter it.
  void open_to_job(const std::shared_ptr<Lease>& held);
  // Of a call that was granted nothing.
  void tell_end(const Name& name, Instant begun, bool waited, const Said& said);
  static Said said_by(const LockOptions& options) noexcept { return {options.label, options.job.name()}; }

 private:
  Instant end_by_ = Instant::max();

 public:
  const EngineOptions options;
  const std::string engine_id;
  const std::shared_ptr<store::LockTable> table;
  const LeasePolicy policy;
  const std::shared_ptr<EventQueue> events;
  ReentranceTable entries{};

 private:
  std::atomic<bool> running_{false};  // the threads without which no lease is asked for

 public:
  TrustTimer timer;
  const std::shared_ptr<WaitQueues> queues = std::make_shared<WaitQueues>(options.polling.longest);
  LeaseRenewer renewer;
  Reaper reaper;
  Notifier notifier;
  const std::unique_ptr<LingeringLeases> lingering;  // null: nothing lingers here
  std::atomic<bool> lingers_somewhere{false};        // as far as is known: in any engine on this table
};

template <class Call>
auto Context::retry(const Deadline& deadline, Doubt& doubt, Call ask) -> decltype(ask(deadline)) {
  constexpr Duration last_look = std::chrono::milliseconds{50};
  Backoff backoff(std::chrono::seconds{1});
  std::optional<Failure> telling;
  const auto again = [&](const Failure& failure) {
    doubt.add(failure);
    if (!is_transient(failure.cause())) return false;
    // In words of its own: those of an exception may be shared with another thread.
    if (is_telling(failure)) telling.emplace(failure.cause(), std::string(failure.what()), failure.code());
    const auto now = BootClock::now();
    auto at = later(now, backoff.next());
    // Once more shortly before time is up, so that nobody gives up much sooner than that.
    if (at >= deadline.at()) {
      at = now < deadline.at() ? deadline.at() - within(last_look, 2) : now;
      if (at <= now) return false;
    }
    events->emit_retry(failure);
    return !pause_until(at, deadline.stop());
  };
  try {
    return dlock::retry([&] { return ask(deadline.no_later_than(soon())); }, again);
  } catch (const Failure& last) {
    const bool told = telling && !is_telling(last) && !planted("last_look_told");
    throw to_error(told ? after_telling(*telling, last) : last, doubt);
  }
}

template <class Call>
auto Context::ask_unless_locked(const Name& name, const Deadline& deadline, Call ask) -> decltype(ask(deadline)) {
  bool locked = false;
  try {
    return retry(deadline, [&](const Deadline& until) {
      try {
        return ask(until);
      } catch (const Failure& failure) {
        locked = locked || failure.cause() == Cause::locked;
        throw;
      }
    });
  } catch (const Error& error) {
    if (!locked || deadline.stopped()) throw;
    const auto found = blocked(name, {Instant::max(), deadline.stop()});
    throw Error(Fault::timeout,
                fmt::format("nobody could see whether {} is free: {}", in_quotes(name.text()),
                            found.text.empty() ? error.what() : found.text),
                error.vendor_code());
  }
}

}  // namespace dlock::engine
