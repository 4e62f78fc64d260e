// Gives leases back: one, or many in one statement.
#include "engine/lease/releasing.hpp"

#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace dlock::engine {
namespace {

constexpr Duration least_share = std::chrono::milliseconds{50};

// When a release has ended, however it did, those who wait in this process look for themselves.
class WakeOnExit {
 public:
  WakeOnExit(WaitQueues& queues, const std::string& name, const bool& yields)
      : queues_(queues), name_(name), yields_(yields) {}
  ~WakeOnExit() {
    if (wakes_ && !planted("silent_local_release")) queues_.wake_head(name_, yields_);
  }
  WakeOnExit(const WakeOnExit&) = delete;
  WakeOnExit& operator=(const WakeOnExit&) = delete;
  // There is nothing to hear of.
  void keep_silent() { wakes_ = false; }

 private:
  WaitQueues& queues_;
  const std::string& name_;
  const bool& yields_;
  bool wakes_ = true;
};

}  // namespace

Released Releaser::release(const std::shared_ptr<Lease>& held, Duration timeout) {
  if (planted("release_takes_its_time")) timeout = context_.options.timeouts.request;
  Releasing one{held};
  if (const auto end = leave(one)) return *end;
  return free(one, later(BootClock::now(), timeout));
}

// What has been entered is left. Empty: its row is to be freed.
std::optional<Released> Releaser::leave(Releasing& one) {
  const auto& held = one.held;
  one.was_valid = held->valid(BootClock::now());
  switch (context_.entries.leave(held)) {
    case ReentranceTable::Rest::nothing: break;
    case ReentranceTable::Rest::others: return one.was_valid ? Released::still_held : Released::was_lost;
    case ReentranceTable::Rest::detached: return Released::unconfirmed;
    case ReentranceTable::Rest::released: return context_.entries.what_became(held);
  }
  one.was_lost = !held->let_go();
  context_.tell_if_lost(held);
  context_.forget(held);
  late_attempts_.expect(*held);
  return std::nullopt;
}

Released Releaser::free(Releasing& one, Instant deadline) {
  const auto& held = one.held;
  bool yields = false;
  WakeOnExit wake(*context_.queues, held->name(), yields);
  try {
    std::shared_ptr<Lease> unclaimed;
    if (!one.was_lost && hand_over_.hand_over(held, deadline, one.in_doubt, yields, unclaimed)) {
      if (unclaimed) release(unclaimed, context_.options.timeouts.release);
      wake.keep_silent();  // the name was not free for a moment: whoever were woken would look in vain
      return Released::freed;
    }
    if (!one.was_lost && !yields)
      if (const auto end = lingering_.linger(held, deadline, one.in_doubt)) return *end;
    const auto left = context_.retry(deadline, {}, one.in_doubt,
                                     [&](Deadline until) { return context_.table->leave(held->key(), until); });
    late_attempts_.bar(*held, deadline);
    return after_release(held, left, one.was_lost, one.in_doubt && one.was_valid);
  } catch (const Error& error) { return release_later(held, one.was_lost, error); }
}

Released Releaser::after_release(const std::shared_ptr<Lease>& held, const store::Left& left, bool was_lost,
                                 bool may_have_been_freed) {
  // Of a node the grant that was given back and one that comes late have one token, so that none of them is kept.
  if (held->mode() == Mode::node && held->unanswered)
    context_.renewer.free_later({held->name(), held->owner(), {}, true, held->longest(), held->mode()});
  if (was_lost) return Released::was_lost;
  if (!left.was_there && !may_have_been_freed) {
    context_.events->counters().lost.of(Loss::refused).add();
    context_.events->emit(Event::Kind::lost, *held, {}, "it was no longer ours when it was released");
    return Released::was_lost;
  }
  if (left.still_held) return Released::still_held;
  context_.events->emit(Event::Kind::released, *held);
  return Released::freed;
}

Released Releaser::release_later(const std::shared_ptr<Lease>& held, bool was_lost, const Error& why) {
  context_.renewer.free_later({held->name(), held->owner(), {}, false, held->longest(), held->mode()});
  if (was_lost) return Released::was_lost;
  context_.events->emit(Event::Kind::released, *held, {},
                        fmt::format("not confirmed; at the latest it ends with its lease: {}", why.what()));
  return Released::unconfirmed;
}

std::vector<Releaser::Given> Releaser::release_together(std::span<const std::shared_ptr<Lease>> all, Duration timeout) {
  std::vector<Given> ends(all.size());
  std::vector<std::pair<Releasing, std::size_t>> plain;
  const auto alone = [&](const Releasing& one, std::size_t place) {
    ends[place].finish = [this, one = one](Duration time) mutable { return free(one, later(BootClock::now(), time)); };
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    Releasing one{all[i]};
    ends[i].end = leave(one);
    if (ends[i].end) continue;
    const bool handed = !one.was_lost && context_.queues->anybody(one.held->name());
    if (handed || one.held->mode() != Mode::exclusive) alone(one, i);
    else plain.emplace_back(std::move(one), i);
  }
  const auto name = [](const auto& each) -> const std::string& { return each.first.held->name(); };
  std::ranges::stable_sort(plain, {}, name);
  std::vector<store::LeaseKey> keys;
  std::vector<std::pair<Releasing, std::size_t>> sent;
  keys.reserve(plain.size());
  sent.reserve(plain.size());
  for (auto& each : plain) {
    if (!sent.empty() && name(sent.back()) == name(each)) {
      alone(each.first, each.second);
      continue;
    }
    keys.push_back(each.first.held->key());
    sent.push_back(std::move(each));
  }
  std::vector<std::optional<bool>> answers(keys.size());
  try {
    const Deadline deadline = std::min(later(BootClock::now(), timeout), context_.soon());
    if (keys.size() == 1) answers.front() = context_.table->release(keys.front(), deadline);
    else answers = context_.table->release_together(keys, deadline);
  } catch (const Failure& failure) {  // each is asked for alone, which tells what is wrong if it still is
    for (auto& each : sent) each.first.in_doubt = failure.may_have_run();
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    auto& [one, place] = sent[i];
    if (!answers[i]) {
      alone(one, place);
      ends[place].locked = true;
      continue;
    }
    const bool yields = false;
    const WakeOnExit wake(*context_.queues, one.held->name(), yields);
    ends[place].end = after_release(one.held, {*answers[i]}, one.was_lost, one.in_doubt && one.was_valid);
  }
  return ends;
}

// A row that stays locked takes its share of the time, and little from the others.
std::vector<Released> Releaser::release_each(std::span<const std::shared_ptr<Lease>> all, Duration timeout) {
  const auto until = later(BootClock::now(), timeout);
  const auto left = [until] {
    const auto now = BootClock::now();
    return std::chrono::floor<Duration>(std::max(until, now) - now);
  };
  std::vector<Given> given;
  for (auto rest = all; !rest.empty();) {
    const auto some = rest.first(std::min<std::size_t>(rest.size(), std::max(1U, context_.options.combine)));
    for (auto& one : release_together(some, left())) given.push_back(std::move(one));
    rest = rest.subspan(some.size());
  }
  std::vector<Released> ends(all.size(), Released::unconfirmed);
  auto open = static_cast<Duration::rep>(std::ranges::count_if(given, [](const Given& one) { return !one.end; }));
  for (const bool locked : {false, true})
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].locked != locked) continue;
      const auto share = std::max<Duration>(left() / std::max<Duration::rep>(open, 1), context_.within(least_share, 4));
      if (!given[i].end) --open;
      ends[i] = given[i].end ? *given[i].end : given[i].finish(std::min(left(), share));
    }
  return ends;
}

}  // namespace dlock::engine
