// What a round of the reaper does, in which order; when it asks for its turn, and how long that lasts; and how the
// grace is waited for.
#include "engine/reaper.hpp"

#include "engine/backoff.hpp"
#include "engine/batches.hpp"
#include "engine/breathing.hpp"
#include "engine/floor_grace.hpp"
#include "engine/glob.hpp"
#include "engine/settler.hpp"
#include "store/reaper_table.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"
#include "types/pause.hpp"
#include "types/retry.hpp"
#include "types/worker.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

constexpr std::size_t batch_of_rows = 1000;

// A reaper that died in its turn keeps the others waiting for so long. Renewed between batches.
constexpr Duration turn = std::chrono::seconds{15};
constexpr Duration longest_farewell = std::chrono::seconds{1};
constexpr Duration turn_poll = std::chrono::milliseconds{200};
constexpr Duration progress_step = std::chrono::milliseconds{250};
constexpr Duration longest_backoff = std::chrono::minutes{1};

constexpr Token any_floor{std::numeric_limits<std::int64_t>::max()};

}  // namespace

struct Reaper::State : Worker {
  using Progress = std::function<void(const ReapProgress&)>;

  State(std::shared_ptr<store::LockTable> the_table, std::shared_ptr<EventQueue> news, ReaperOptions the_options)
      : table(std::move(the_table)), events(std::move(news)), options(std::move(the_options)) {}

  const std::shared_ptr<store::LockTable> table;
  store::ReaperTable& reaping = table->reaping();
  const std::shared_ptr<EventQueue> events;
  const ReaperOptions options;
  const std::string id = random_identity();
  std::stop_source stopping;  // once it is closing
  AnnotatedMutex working;
  Instant turn_begun GUARDED_BY(working){};
  FloorGrace grace GUARDED_BY(working){options.grace};
  Settler settler GUARDED_BY(working){reaping, events, id};

  // Asks until there is an answer, request_timeout is over, or asking again is useless.
  template <class Call>
  auto ask(const std::stop_token& stop, Call question) -> decltype(question(Deadline::max())) {
    const auto deadline = ends_within(options.request_timeout);
    Backoff backoff(std::chrono::seconds{1});
    const auto answer = [&] {
      if (stopping.stop_requested()) throw Failure(Cause::timed_out, "the engine ends");
      return question(deadline);
    };
    return retry(answer, [&](const Failure& failure) {
      const auto at = later(BootClock::now(), backoff.next());
      if (!is_transient(failure.cause()) || at >= deadline || stop.stop_requested() || stopping.stop_requested())
        return false;
      events->emit_retry(failure, "reaper");
      return !pause_until(at, stop);
    });
  }

  auto asking(const std::stop_token& stop) {
    return [this, &stop](const auto& question) { return ask(stop, question); };
  }

  // ---- Turns

  bool begin_turn(Duration pause, const std::stop_token& stop) REQUIRES(working) {
    const auto now = BootClock::now();
    if (!ask(stop, [&](Deadline until) { return reaping.begin_reaping(id, options.label, turn, pause, until); }))
      return false;
    turn_begun = now;
    return true;
  }

  // Between batches. False: the turn was so long ago that another reaper has it now.
  bool still_my_turn(const std::stop_token& stop) REQUIRES(working) {
    return BootClock::now() - turn_begun < turn / 3 || begin_turn({}, stop);
  }

  void end_turn(Duration pause) noexcept {
    try {
      reaping.end_reaping(id, pause, ends_within(std::min(options.request_timeout, longest_farewell)));
    } catch (...) {  // then it ends by its time
    }
  }

  // False: it is another reaper's turn, or nobody's yet.
  template <class Work>
  bool in_turn(Duration pause, const std::stop_token& stop, Work work) REQUIRES(working) {
    if (!begin_turn(pause, stop)) return false;
    try {
      work();
    } catch (...) {
      end_turn({});
      throw;
    }
    end_turn(pause);
    return true;
  }

  Token look_at_floor(const std::stop_token& stop) REQUIRES(working) {
    const auto floor = ask(stop, [&](Deadline until) { return table->floor(until); });
    grace.found(floor);
    return floor;
  }

  template <class Work>
  void each_dead(const Scope& scope, const std::stop_token& stop, Work work) {
    const auto list = [&](const store::Some& some, const std::string& after_owner) {
      return ask(stop, [&](Deadline until) { return reaping.dead_holders(some, after_owner, until); });
    };
    engine::each_dead(scope, batch_of_rows, stop, list, work);
  }

  template <class Work>
  void each_abandoned(const Scope& scope, std::size_t batch, const std::stop_token& stop, Work work) {
    const auto list = [&](const store::Some& some) {
      return ask(stop, [&](Deadline until) { return reaping.abandoned(some, until); });
    };
    each_batch(scope, {batch}, stop, list, work);
  }

  // Tells of the dead until `told` have been told of since the beginning; false: so it is, or the turn is over.
  bool forget_holders(std::vector<store::DeadHolder>& dead, std::size_t told, const std::stop_token& stop)
      REQUIRES(working) {
    const auto others = std::stable_partition(dead.begin(), dead.end(), [](const auto& one) { return one.abandoned; });
    for (auto one = dead.begin(); one != others; ++one) {
      if (settler.told() >= told || stop.stop_requested() || !still_my_turn(stop)) return false;
      settler.forget(*one, asking(stop));
    }
    if (others == dead.end()) return true;
    if (!still_my_turn(stop)) return false;
    unless_locked(stop, [&](Deadline until) { reaping.forget_holders({others, dead.end()}, until); });
    return true;
  }

  // Where a lock that several held was settled, or may have been, each is told of with it, and not after all other
  // locks. Answers whether there were any.
  bool tell_sharers(const store::Abandoned& lease, std::size_t told, const std::stop_token& stop) REQUIRES(working) {
    if (!lease.node.empty()) return false;
    bool any = false;
    std::string owner;
    for (bool more = true; more;) {
      auto dead =
          ask(stop, [&](Deadline until) { return reaping.dead_holders_of(lease.name, owner, batch_of_rows, until); });
      more = dead.size() == batch_of_rows;
      any = any || !dead.empty();
      if (more) owner = dead.back().owner;
      more = forget_holders(dead, told, stop) && more;
    }
    return any;
  }

  // What was left behind by those who died while they shared a name with others, or waited.
  void forget_the_dead(const Scope& scope, std::size_t told, const std::stop_token& stop) REQUIRES(working) {
    each_dead(scope, stop, [&](std::vector<store::DeadHolder>& dead) {
      working.is_held();
      return forget_holders(dead, told, stop);
    });
    unless_locked(stop, [&](Deadline until) { table->waiting().forget_waiters(batch_of_rows, until); });
  }

  // Settles what is abandoned, and tidies up after the dead, until `limit` of them have been told of. A lock that
  // several held, all of whom had let go, counts as one.
  void tell_abandoned(const Scope& scope, std::size_t limit, std::size_t batch, const std::stop_token& stop,
                      const Progress& progress) REQUIRES(working) {
    const auto before = settler.told();
    auto told = limit < Reaping::all - before ? before + limit : Reaping::all;
    if (progress) progress({ReapProgress::Phase::settling, 0, 0, {}});
    settler.resolve_doubts(asking(stop), [&](const store::Abandoned& lease) {
      working.is_held();
      tell_sharers(lease, told, stop);
    });
    each_abandoned(scope, batch, stop, [&](const std::vector<store::Abandoned>& leases) {
      working.is_held();
      for (const auto& lease : leases) {
        if (settler.told() >= told || stop.stop_requested() || !still_my_turn(stop)) return false;
        const bool settled = settler.settle(lease, asking(stop));
        const bool of_nobody = !tell_sharers(lease, told, stop) && lease.node.empty();
        if (settled && of_nobody && told != Reaping::all) --told;
      }
      if (progress) progress({ReapProgress::Phase::settling, settler.told() - before, 0, {}});
      return settler.told() < told;
    });
    if (!stop.stop_requested()) forget_the_dead(scope, told, stop);
  }

  // What is locked the next round finds.
  template <class Work>
  void unless_locked(const std::stop_token& stop, Work work) {
    ask(stop, [&](Deadline until) {
      try {
        work(until);
      } catch (const Failure& failure) {
        if (failure.cause() != Cause::locked) throw;
      }
    });
  }

  // Of the rows of history that are too many, if a number is set: how many they are; removes `limit` of them at most.
  std::size_t count_history(const std::stop_token& stop, std::size_t batch = 100'000) {
    std::size_t rows = 0;
    for (store::HistoryPiece piece{batch}; options.history > 0 && piece.rows == batch; rows += piece.rows)
      piece = ask(stop, [&](Deadline by) { return reaping.count_history(options.history, piece.last, batch, by); });
    return rows;
  }

  std::size_t trim_history(std::size_t limit, std::size_t batch, const std::stop_token& stop) REQUIRES(working) {
    std::size_t removed = 0;
    for (bool more = options.history > 0; more && removed < limit;) {
      const auto begun = BootClock::now();
      const auto gone = ask(stop, [&](Deadline until) { return reaping.trim_history(options.history, batch, until); });
      removed += gone;
      more = gone >= batch && !breathe(begun, stop) && still_my_turn(stop);
    }
    return removed;
  }

  Token raise_floor(const std::stop_token& stop) REQUIRES(working) {
    const auto floor = ask(stop, [&](Deadline until) { return reaping.raise_floor(options.retention, until); });
    grace.saw(floor);
    return floor;
  }

  template <class Work>
  void each_idle(const Scope& scope, Token floor, const RemovalPace& pace, const std::stop_token& stop, Work work) {
    const auto list = [&](const store::Some& some) {
      return ask(stop, [&](Deadline until) { return reaping.idle(some, floor, options.retention, until); });
    };
    each_batch(scope, pace, stop, list, work);
  }

  std::size_t remove(const Scope& scope, Token floor, std::size_t limit, std::size_t batch, const std::stop_token& stop,
                     const Progress& progress, std::size_t total) REQUIRES(working) {
    std::size_t removed = 0;
    each_idle(scope, floor, reaping.removal_pace().at_most(batch), stop, [&](std::vector<store::Idle>& rows) {
      working.is_held();
      if (rows.size() > limit - removed) rows.resize(limit - removed);
      // After an answer that was lost the rows are not there any more, and are not counted.
      removed += ask(stop, [&](Deadline until) { return reaping.remove_idle(rows, until); });
      if (progress) progress({ReapProgress::Phase::removing, removed, total, {}});
      return removed < limit && still_my_turn(stop);
    });
    return removed;
  }

  // ---- By itself

  // One in the interval for all engines: whoever comes first says that none is needed for most of it. The others only
  // look at the floor, so that each can go on where another has stopped.
  void automatic_round(const std::stop_token& stop) {
    const MutexLock guard(working);
    const Scope everything("*");
    const bool mine = in_turn(options.every / 4 * 3, stop, [&]() REQUIRES(working) {
      look_at_floor(stop);
      tell_abandoned(everything, Reaping::all, batch_of_rows, stop, {});
      if (const auto floor = grace.below()) remove(everything, *floor, Reaping::all, Reaping::all, stop, {}, 0);
      if (!stop.stop_requested()) raise_floor(stop);
      if (!stop.stop_requested()) trim_history(Reaping::all, batch_of_rows, stop);
    });
    if (!mine) grace.saw(look_at_floor(stop));
    grace.below();
  }

  void wake() noexcept override { stopping.request_stop(); }

  void run() override {
    const auto stop = stopping.get_token();
    std::optional<Backoff> backoff;
    auto next = later(BootClock::now(), between({}, options.every));
    while (!pause_until(next, stop)) {
      try {
        automatic_round(stop);
        backoff.reset();
        next = later(BootClock::now(), jittered(options.every));
      } catch (const std::exception& failure) {
        if (stop.stop_requested()) break;
        events->emit_retry(failure, "reaper");
        if (!backoff) backoff.emplace(std::min(options.every, longest_backoff));
        next = later(BootClock::now(), std::max(backoff->next(), shortest_breath));
      }
    }
    give_up_doubts();
  }

  void give_up_doubts() noexcept {
    const MutexLock guard(working);
    settler.give_up_doubts();
  }
};

Reaper::Reaper(std::shared_ptr<store::LockTable> table, std::shared_ptr<EventQueue> events, ReaperOptions options)
    : state_(std::make_shared<State>(std::move(table), std::move(events), std::move(options))) {
  const MutexLock guard(state_->mutex);
  if (state_->options.every > Duration{}) state_->start();
}

void Reaper::close(Instant until) noexcept { state_->close(until); }

Reaper::~Reaper() {
  state_->finish();
  if (state_->options.every == Duration{}) state_->give_up_doubts();
}

Engine::Reaped Reaper::round(std::size_t batch) {
  auto& state = *state_;
  if (!state.working.try_lock()) return {0, 0, true, 0};
  const MutexLock guard(state.working, std::adopt_lock);
  const auto stop = state.stopping.get_token();
  const Scope everything("*");
  Engine::Reaped reaped;
  reaped.elsewhere = !state.in_turn({}, stop, [&] {
    state.working.is_held();
    state.look_at_floor(stop);
    const auto told = state.settler.told();
    state.tell_abandoned(everything, batch, batch, stop, {});
    reaped.abandoned = state.settler.told() - told;
    if (const auto floor = state.grace.below())
      reaped.removed = state.remove(everything, *floor, batch, batch, stop, {}, 0);
    state.raise_floor(stop);
    reaped.history = state.trim_history(batch, batch, stop);
  });
  return reaped;
}

Engine::Reaped Reaper::pass(const Reaping& reaping, const std::stop_token& stop) {
  auto& state = *state_;
  const Scope scope(reaping.glob);
  const auto& progress = reaping.progress;
  Engine::Reaped reaped;
  std::size_t candidates = 0;
  const auto count = [&] {
    state.each_idle(scope, any_floor, {batch_of_rows}, stop, [&](const std::vector<store::Idle>& rows) {
      candidates += std::min(rows.size(), reaping.limit - candidates);
      return candidates < reaping.limit;
    });
  };
  if (reaping.dry_run) {
    count();
    reaped.removed = candidates;
    state.each_abandoned(scope, batch_of_rows, stop, [&](const std::vector<store::Abandoned>& leases) {
      for (const auto& lease : leases) reaped.abandoned += lease.node.empty() ? lease.sharers : 1;
      return reaped.abandoned < reaping.limit;
    });
    state.each_dead(scope, stop, [&](const std::vector<store::DeadHolder>& dead) {
      reaped.abandoned += static_cast<std::size_t>(std::ranges::count(dead, true, &store::DeadHolder::abandoned));
      return reaped.abandoned < reaping.limit;
    });
    reaped.abandoned = std::min(reaped.abandoned, reaping.limit);
    reaped.history = state.count_history(stop);
    return reaped;
  }
  const auto when_possible = [&](auto work) {
    for (;;) {
      {
        const MutexLock guard(state.working);
        if (state.in_turn({}, stop, work)) return true;
      }
      if (progress) progress({ReapProgress::Phase::turn, 0, 0, {}});
      if (pause_until(later(BootClock::now(), jittered(turn_poll)), stop)) return false;
    }
  };
  Token floor{};
  const bool begun = when_possible([&] {
    state.working.is_held();
    const auto told = state.settler.told();
    state.tell_abandoned(scope, reaping.limit, batch_of_rows, stop, progress);
    reaped.abandoned = state.settler.told() - told;
    reaped.history = state.trim_history(Reaping::all, batch_of_rows, stop);
    count();
    if (candidates > 0) floor = state.raise_floor(stop);
  });
  if (!begun || candidates == 0) return reaped;
  const auto over = later(BootClock::now(), state.options.grace);
  for (auto now = BootClock::now(); now < over; now = BootClock::now()) {
    if (progress) progress({ReapProgress::Phase::grace, 0, candidates, std::chrono::ceil<Duration>(over - now)});
    if (pause_until(std::min(over, later(now, progress_step)), stop)) return reaped;
  }
  when_possible([&] {
    state.working.is_held();
    reaped.removed = state.remove(scope, floor, reaping.limit, Reaping::all, stop, progress, candidates);
  });
  return reaped;
}

}  // namespace dlock::engine
