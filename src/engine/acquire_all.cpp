// Takes several names, all of them or none: what is read first and asked for together, which one it waits for while it
// holds none, and when it lets others go first. In which order they are asked for: api/engine.cpp.
#include "engine/acquire_all.hpp"

#include "engine/backoff.hpp"
#include "engine/faults.hpp"
#include "engine/on_behalf.hpp"
#include "types/mutant.hpp"
#include "types/pause.hpp"

#include <dlock/error.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

constexpr Duration longest_pause = std::chrono::milliseconds{250};
// So many attempts in vain follow each other without a pause.
constexpr int most_in_a_row = 2;

// Asks for all that are free in one statement, and gives back what it was granted where that is not all. Then it waits
// for the name in the way as others do who want that one alone, and tries the others with it in hand.
// Threads: one. Leaves nothing behind unless it is granted all, but for the at-least times of a node's names.
class AcquireOfAll {
 public:
  // `options`: without an at-least time, which what is given back would keep.
  AcquireOfAll(Acquirer& acquirer, LeaseChanges& changes, std::span<const Name> names, const LockOptions& options,
               Duration at_least, const Patience& patience)
      : acquirer_(acquirer),
        parts_(acquirer.parts),
        context_(parts_.context),
        changes_(changes),
        names_(names),
        options_(options),
        at_least_(at_least),
        patience_(patience),
        reentrance_(options.reentrance.value_or(context_.options.reentrance)),
        held_(names.size()),
        requests_(names.size()),
        own_(names.size()) {}
  ~AcquireOfAll() {
    try {
      give_back();
    } catch (const std::exception&) {  // out of memory: it ends with its lease
    }
  }
  AcquireOfAll(const AcquireOfAll&) = delete;
  AcquireOfAll& operator=(const AcquireOfAll&) = delete;

  AcquiredAll operator()() {
    const Deadline free_by(std::min(context_.answer_by(patience_.deadline), context_.soon()), patience_.stop);
    for (const auto& name : names_) parts_.lingering.end(name.text(), free_by);
    auto lingered = names_.size();  // so many may, somewhere else
    for (bool first = true;; first = false) {
      if (attempt(first)) return {keep()};
      const bool in_vain = gives_back();
      give_back();
      if (!patience_.lasts()) {
        rethrow_broken();
        if (!row_locked_ && lingered-- > 0 && parts_.lingering.await(names_[in_the_way_], patience_)) continue;
        if (!patience_.stop.stop_requested())
          context_.tell_end(names_[in_the_way_], called_, patience_.waits, Context::said_by(options_));
        break;
      }
      if (!wait(in_vain)) break;
    }
    return {{}, in_the_way_, row_locked_};
  }

 private:
  using Index = std::size_t;

  // What is passing makes an attempt one in vain.
  bool attempt(bool first) {
    broken_ = nullptr;
    try {
      return take(first);
    } catch (const Error& error) {
      if (patience_.stop.stop_requested()) return false;
      if (!is_transient(error.fault()) || !patience_.lasts()) throw;
      broken_ = std::current_exception();
      return false;
    }
  }

  // Time was up while it passed: what is in the way is not a name.
  void rethrow_broken() const {
    if (broken_ && !patience_.stop.stop_requested() && !planted("several_broken_busy")) std::rethrow_exception(broken_);
  }

  bool take(bool first) {
    const auto missing = enter();
    // Who is in line in this process comes first, but for those who do not wait; not again and again.
    if (first && patience_.waits)
      for (const auto index : missing)
        if (context_.queues->anybody(names_[index].text())) return refused(index, false);
    if (seen_busy(missing)) return false;
    const auto most = std::max<Index>(1, context_.options.combine);
    for (std::span<const Index> rest = missing; !rest.empty();) {
      const auto some = rest.first(std::min(rest.size(), most));
      if (!take(some)) return false;
      rest = rest.subspan(some.size());
    }
    return all_valid() && closed();
  }

  // What the thread, or its job, holds already. Answers what is to be asked for.
  std::vector<Index> enter() {
    std::vector<Index> missing;
    for (Index i = 0; i < names_.size(); ++i) {
      if (!held_[i] && reentrance_ == Reentrance::thread)
        held_[i] = parts_.reentry.reenter(names_[i], options_, patience_.deadline);
      if (!held_[i]) missing.push_back(i);
    }
    return missing;
  }

  // Whether one of them can be seen to be in vain, before anything is written. Of a node's name only an attempt tells.
  bool seen_busy(std::span<const Index> missing) {
    if (missing.size() < 2 || reentrance_ == Reentrance::node || planted("several_try_blindly")) return false;
    std::vector<std::string_view> names;
    names.reserve(missing.size());
    for (const auto index : missing) {
      names.emplace_back(names_[index].text());
      if (context_.renewer.has_leftovers(names.back())) return false;  // it may be in the way of itself
    }
    try {
      const auto busy = context_.table->first_busy(names, until());
      if (!busy) return false;
      parts_.attempts.was_busy(names_[missing[*busy]].text());
      refused(missing[*busy], false);
      return true;
    } catch (const Failure&) { return false; }  // the attempt tells what is wrong, if it still is
  }

  bool take(std::span<const Index> some) {
    Instant sent{};
    const auto answers = ask_together(some, sent);
    std::vector<Index> open;
    std::optional<Index> busy;
    for (Index i = 0; i < some.size(); ++i) {
      const auto index = some[i];
      if (answers[i] && (answers[i]->token || !context_.renewer.has_leftovers(names_[index].text()))) {
        auto& request = *requests_[index];
        const auto end = parts_.attempts.take_up(request, *answers[i], sent, false, until());
        own_[index] = end && *end;
        if (end) held_[index] = *end ? *end : parts_.reentry.enter_by_job(request, patience_.deadline);
        if (held_[index]) continue;
        if (end) {
          busy = busy.value_or(index);
          continue;
        }
      }
      open.push_back(index);
    }
    if (busy) {
      parts_.attempts.was_busy(names_[*busy].text());
      return refused(*busy, false);
    }
    return std::ranges::all_of(open, [&](Index index) { return take_alone(index); });
  }

  // In one statement. No answer: it is to be asked for alone, as the same owner.
  std::vector<std::optional<store::Granted>> ask_together(std::span<const Index> some, Instant& sent) {
    std::vector<std::optional<store::Granted>> answers(some.size());
    if (some.size() < 2 || reentrance_ == Reentrance::node) return answers;
    std::vector<store::AcquireRequest> asks;
    asks.reserve(some.size());
    sent = BootClock::now();
    for (const auto index : some) {
      auto& request = request_of(index);
      request.first_sent = sent;
      asks.push_back(parts_.attempts.acquire_request(request, sent));
    }
    try {
      answers = context_.table->acquire_together(asks, until());
    } catch (const Failure& failure) {  // each is asked for alone, which tells what is wrong if it still is
      context_.events->emit_retry(failure);
      for (const auto index : some) requests_[index]->unanswered = failure.may_have_run();
    } catch (...) {
      for (const auto index : some) requests_[index]->in_doubt = true;
      throw;
    }
    // Until each is in somebody's hands: what is thrown of one leaves none of the others behind.
    for (Index i = 0; i < some.size(); ++i)
      if (answers[i] && answers[i]->token && !planted("several_forgotten")) requests_[some[i]]->in_doubt = true;
    return answers;
  }

  bool take_alone(Index index) {
    request_of(index);
    const auto request = std::move(requests_[index]);
    if (!request->unanswered && !request->in_doubt) request->first_sent = BootClock::now();
    std::shared_ptr<Lease> held;
    std::exception_ptr broken;
    try {
      held = parts_.attempts.try_first(
          *request, {std::min(patience_.deadline, context_.soon()), patience_.stop, patience_.waits});
      if (!held) held = parts_.reentry.enter_by_job(*request, patience_.deadline);
    } catch (const Error&) { broken = std::current_exception(); } catch (...) {  // out of memory
      free_doubtful(*request);
      throw;
    }
    if (!held && !broken && patience_.lasts()) {
      free_doubtful(*request);
      return refused(index, false);
    }
    held = acquirer_.concluded(*request, patience_, std::move(held), broken);
    if (!held) return refused(index, request->found_locked);
    own_[index] = !request->entered;
    held_[index] = std::move(held);
    return true;
  }

  // The first of them may have ended before the last one was granted.
  bool all_valid() {
    const auto now = BootClock::now();
    for (Index i = 0; i < held_.size(); ++i)
      if (!held_[i]->valid(now) && !planted("several_ended_kept")) return refused(i, false);
    return true;
  }

  // Now that there is nothing to be given back.
  bool closed() {
    if (at_least_ == Duration{} || planted("several_without_at_least")) return true;
    for (Index i = 0; i < held_.size(); ++i) {
      if (!own_[i]) continue;
      held_[i]->to_be_reopened = true;  // it may be closed from now on: whoever releases it meanwhile opens it
      if (!close(held_[i])) return refused(i, false);
    }
    if (!all_valid()) return false;
    stay_closed();
    return true;
  }

  void stay_closed() {
    for (Index i = 0; i < held_.size(); ++i)
      if (own_[i] && held_[i]) held_[i]->to_be_reopened = false;
  }

  bool close(const std::shared_ptr<Lease>& held) {
    for (;;) {
      const auto lease = std::min<Duration>(held->terms().asked(), held->room(BootClock::now()));
      try {
        changes_.extend(held, {lease, at_least_, true}, context_.soon());
        return true;
      } catch (const Error& error) {
        if (error.fault() == Fault::lost) return false;
        // Unless max_hold leaves less by now than when it was measured.
        const auto now = BootClock::now();
        if (error.fault() != Fault::misuse || held->room(now) >= lease) throw;
        if (!held->valid(now)) return false;
      }
    }
  }

  // Nobody has had all: what was closed before the rest was not is open again once it is given back, now or later.
  void reopen() {
    if (planted("several_stay_closed")) return stay_closed();
    const Deadline deadline = later(BootClock::now(), context_.options.timeouts.release);
    bool away = false;
    for (Index i = 0; i < held_.size(); ++i) {
      if (!own_[i] || !held_[i] || !held_[i]->to_be_reopened) continue;
      // It is theirs as well who are inside by the same job.
      held_[i]->to_be_reopened = reentrance_ != Reentrance::thread || context_.entries.inside(*held_[i]) <= 1;
      if (away || !held_[i]->to_be_reopened) continue;
      try {
        held_[i]->pin();
        const auto key = held_[i]->key();
        context_.retry(deadline,
                       [&](Deadline until) { return context_.table->extend(key, key.lease, store::reopens, until); });
        held_[i]->to_be_reopened = false;
      } catch (const Error&) { away = true; }
    }
  }

  bool refused(Index index, bool row_locked) noexcept {
    in_the_way_ = index;
    row_locked_ = row_locked;
    return false;
  }

  // Holding nothing. False: there is no patience left.
  bool wait(bool in_vain) {
    if (broken_) {
      pause_until(std::min(patience_.deadline, later(BootClock::now(), broken_pauses_.next())), patience_.stop);
      if (!patience_.lasts()) rethrow_broken();
      return patience_.lasts();
    }
    // Two who hold what the other one wants, and each goes after that: one of them lets the other go first.
    if (in_vain) pause_until(std::min(patience_.deadline, later(BootClock::now(), pauses_.next())), patience_.stop);
    auto held = acquirer_.acquire(names_[in_the_way_], options_, patience_);
    row_locked_ = held.row_locked;
    own_[in_the_way_] = held && !held.entered;
    opened_ = in_the_way_;
    held_[in_the_way_] = std::move(held);
    return held_[in_the_way_] != nullptr;
  }

  // Whether it is about to give back what others would have let go first: names that come after the one in the way.
  bool gives_back() {
    bool any = false, later_ones = false;
    for (Index i = 0; i < held_.size(); ++i) {
      if (!held_[i] || !own_[i]) continue;
      any = true;
      later_ones = later_ones || i > in_the_way_;
    }
    if (any) ++in_vain_;
    return later_ones || (any && in_vain_ > most_in_a_row);
  }

  void give_back() {
    for (auto& request : requests_) {
      if (request) free_doubtful(*request);
      request.reset();
    }
    reopen();
    std::vector<std::shared_ptr<Lease>> all;
    all.reserve(held_.size());
    for (Index i = 0; i < held_.size(); ++i) {
      if (held_[i]) all.push_back(std::exchange(held_[i], nullptr));
      own_[i] = false;
    }
    opened_.reset();
    if (all.empty() || planted("several_kept_in_part")) return;
    parts_.releaser.release_each(all, context_.options.timeouts.release);
  }

  void free_doubtful(const GrantRequest& request) {
    if ((request.in_doubt || request.unanswered) && !planted("several_doubt_kept"))
      parts_.late_attempts.free_later(request);
  }

  std::vector<std::shared_ptr<Lease>> keep() {
    for (Index i = 0; i < held_.size(); ++i) {
      if (!own_[i]) continue;
      if (reentrance_ == Reentrance::thread && opened_ != i) context_.open_to_job(held_[i]);
      requests_[i].reset();  // what is doubtful in it is known to the grant
    }
    return std::exchange(held_, std::vector<std::shared_ptr<Lease>>(names_.size()));
  }

  GrantRequest& request_of(Index index) {
    auto& request = requests_[index];
    if (!request) request = std::make_unique<GrantRequest>(context_, names_[index], options_, reentrance_);
    request->called = called_;
    return *request;
  }

  Deadline until() const { return {std::min(context_.answer_by(patience_.deadline), context_.soon()), patience_.stop}; }

  Acquirer& acquirer_;
  const AcquireParts& parts_;
  Context& context_;
  LeaseChanges& changes_;
  const std::span<const Name> names_;
  const LockOptions& options_;
  const Duration at_least_;
  const Patience& patience_;
  const Reentrance reentrance_;
  const Instant called_ = BootClock::now();
  std::vector<std::shared_ptr<Lease>> held_;             // by their indexes among the names
  std::vector<std::unique_ptr<GrantRequest>> requests_;  // of what is asked for, until it is known what came of it
  std::vector<bool> own_;                                // granted to this one, and not entered
  std::optional<Index> opened_;                          // what was waited for may be entered already
  Index in_the_way_ = 0;
  bool row_locked_ = false;
  std::exception_ptr broken_{};  // the last attempt, by what is passing
  int in_vain_ = 0;
  Backoff pauses_{longest_pause}, broken_pauses_{std::chrono::seconds{1}};
};

}  // namespace

AcquiredAll acquire_all(Acquirer& acquirer, LeaseChanges& changes, std::span<const Name> names,
                        const LockOptions& given, const Patience& patience) {
  const OnBehalf behalf(given);
  auto options = behalf.options();
  options.at_least = {};
  if (options.mode != Mode::exclusive)
    throw Error(Fault::misuse,
                fmt::format("several names are locked exclusively, not in mode {}: lock them one after the "
                            "other",
                            to_string(options.mode)));
  auto& context = acquirer.parts.context;
  static_cast<void>(context.policy.terms_of(options));
  if (patience.stop.stop_requested()) return {};
  context.ensure_running();
  return AcquireOfAll(acquirer, changes, names, options, given.at_least, patience)();
}

}  // namespace dlock::engine
