// Gives leases back: one, or many in one statement.
#include "engine/lease/releasing.hpp"
#include "engine/core.hpp"
#include "engine/retry.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

using engine::Lease;

constexpr Duration least_share = std::chrono::milliseconds{50};

// When a release has ended, however it did, those who wait in this process look for themselves.
class WakeOnExit {
 public:
  WakeOnExit(engine::WaitQueues& queues, const std::string& name, const bool& yields)
      : queues_(queues), name_(name), yields_(yields) {}
  ~WakeOnExit() {
    if (wakes_ && !planted("silent_local_release")) queues_.wake_head(name_, yields_);
  }
  WakeOnExit(const WakeOnExit&) = delete;
  WakeOnExit& operator=(const WakeOnExit&) = delete;
  // There is nothing to hear of.
  void keep_silent() { wakes_ = false; }

 private:
  engine::WaitQueues& queues_;
  const std::string& name_;
  const bool& yields_;
  bool wakes_ = true;
};

}  // namespace

Released Core::release(const std::shared_ptr<Lease>& held, Duration timeout) {
  if (planted("release_takes_its_time")) timeout = options_.timeouts.request;
  Releasing one{held};
  if (const auto end = leave(one)) return *end;
  return free(one, later(BootClock::now(), timeout));
}

// What has been entered is left. Empty: its row is to be freed.
std::optional<Released> Core::leave(Releasing& one) {
  const auto& held = one.held;
  one.was_valid = held->valid(BootClock::now());
  switch (entries_.leave(held)) {
    case engine::ReentranceTable::Rest::nothing: break;
    case engine::ReentranceTable::Rest::others: return one.was_valid ? Released::still_held : Released::was_lost;
    case engine::ReentranceTable::Rest::detached: return Released::unconfirmed;
    case engine::ReentranceTable::Rest::released: return entries_.what_became(held);
  }
  one.was_lost = !held->let_go();
  tell_if_lost(held);
  forget(held);
  expect_late_attempts(*held);
  return std::nullopt;
}

Released Core::free(Releasing& one, Instant deadline) {
  const auto& held = one.held;
  bool yields = false;
  WakeOnExit wake(*queues_, held->name(), yields);
  try {
    if (!one.was_lost && hand_over(held, deadline, one.in_doubt, yields)) {
      wake.keep_silent();  // the name was not free for a moment: whoever were woken would look in vain
      return Released::freed;
    }
    if (!one.was_lost && !yields)
      if (const auto end = linger(held, deadline, one.in_doubt)) return *end;
    const auto left =
        retry(deadline, {}, one.in_doubt, [&](Deadline until) { return table_->leave(held->key(), until); });
    bar_late_attempts(*held, deadline);
    return after_release(held, left, one.was_lost, one.in_doubt && one.was_valid);
  } catch (const Error& error) { return release_later(held, one.was_lost, error); }
}

// `may_have_been_freed`: where there was nothing to free although it was ours when asked first, an attempt without an
// answer has freed it.
Released Core::after_release(const std::shared_ptr<Lease>& held, const store::Left& left, bool was_lost,
                             bool may_have_been_freed) {
  // Of a node the grant that was given back and one that comes late have one token, so that none of them is kept.
  if (held->mode() == Mode::node && held->unanswered)
    renewer_.free_later({held->name(), held->owner(), {}, true, held->longest(), held->mode()});
  if (was_lost) return Released::was_lost;
  if (!left.was_there && !may_have_been_freed) {
    events_->counters().lost.of(Loss::refused).add();
    events_->emit(Event::Kind::lost, *held, {}, "it was no longer ours when it was released");
    return Released::was_lost;
  }
  if (left.still_held) return Released::still_held;
  events_->emit(Event::Kind::released, *held);
  return Released::freed;
}

// It could not be released in time.
Released Core::release_later(const std::shared_ptr<Lease>& held, bool was_lost, const Error& why) {
  renewer_.free_later({held->name(), held->owner(), {}, false, held->longest(), held->mode()});
  if (was_lost) return Released::was_lost;
  events_->emit(Event::Kind::released, *held, {},
                fmt::format("not confirmed; at the latest it ends with its lease: {}", why.what()));
  return Released::unconfirmed;
}

// Those that nobody in this process waits for are freed in one statement; a row that is locked holds up nobody else's.
std::vector<Core::Given> Core::release_together(std::span<const std::shared_ptr<Lease>> all, Duration timeout) {
  std::vector<Given> ends(all.size());
  std::vector<std::pair<Releasing, std::size_t>> plain;
  const auto alone = [&](const Releasing& one, std::size_t place) {
    ends[place].finish = [this, one = one](Duration time) mutable { return free(one, later(BootClock::now(), time)); };
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    Releasing one{all[i]};
    ends[i].end = leave(one);
    if (ends[i].end) continue;
    const bool handed = !one.was_lost && queues_->anybody(one.held->name());
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
    const Deadline deadline = std::min(later(BootClock::now(), timeout), soon());
    if (keys.size() == 1) answers.front() = table_->release(keys.front(), deadline);
    else answers = table_->release_together(keys, deadline);
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
    const WakeOnExit wake(*queues_, one.held->name(), yields);
    ends[place].end = after_release(one.held, {*answers[i]}, one.was_lost, one.in_doubt && one.was_valid);
  }
  return ends;
}

// A row that stays locked takes its share of the time, and little from the others.
std::vector<Released> Core::release_each(std::span<const std::shared_ptr<Lease>> all, Duration timeout) {
  const auto until = later(BootClock::now(), timeout);
  const auto left = [until] {
    const auto now = BootClock::now();
    return std::chrono::floor<Duration>(std::max(until, now) - now);
  };
  std::vector<Given> given;
  for (auto rest = all; !rest.empty();) {
    const auto some = rest.first(std::min<std::size_t>(rest.size(), std::max(1U, options_.combine)));
    for (auto& one : release_together(some, left())) given.push_back(std::move(one));
    rest = rest.subspan(some.size());
  }
  std::vector<Released> ends(all.size(), Released::unconfirmed);
  auto open = static_cast<Duration::rep>(std::ranges::count_if(given, [](const Given& one) { return !one.end; }));
  for (const bool locked : {false, true})
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].locked != locked) continue;
      const auto share = std::max<Duration>(left() / std::max<Duration::rep>(open, 1), within(least_share, 4));
      if (!given[i].end) --open;
      ends[i] = given[i].end ? *given[i].end : given[i].finish(std::min(left(), share));
    }
  return ends;
}

}  // namespace v0
}  // namespace dlock
