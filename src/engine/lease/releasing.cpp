// Gives leases back, one, or many in one statement: whether one is handed over, lingers or is freed; what a caller is
// told of the answer; and what becomes of a release that gets none in time.
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
  WakeOnExit(WaitQueues& queues, const ReleaseRequest& request) : queues_(queues), request_(request) {}
  ~WakeOnExit() {
    if (wakes_ && !planted("silent_local_release")) queues_.wake_head(request_.held->name(), request_.yields);
  }
  WakeOnExit(const WakeOnExit&) = delete;
  WakeOnExit& operator=(const WakeOnExit&) = delete;
  // There is nothing to hear of.
  void keep_silent() { wakes_ = false; }

 private:
  WaitQueues& queues_;
  const ReleaseRequest& request_;
  bool wakes_ = true;
};

}  // namespace

Error not_reopened() { return {Fault::unavailable, "its at-least time is to be ended first"}; }

Released Releaser::release(const std::shared_ptr<Lease>& held, Duration timeout) {
  if (planted("release_takes_its_time")) timeout = context_.options.timeouts.request;
  ReleaseRequest request{held};
  if (const auto end = leave(request)) return *end;
  return free(request, timeout);
}

std::optional<Released> Releaser::leave(ReleaseRequest& request) {
  const auto& held = request.held;
  const bool was_valid = held->valid(BootClock::now());
  switch (context_.entries.leave(held)) {
    case ReentranceTable::Rest::nothing: break;
    case ReentranceTable::Rest::others: return was_valid ? Released::still_held : Released::was_lost;
    case ReentranceTable::Rest::detached: return Released::unconfirmed;
    case ReentranceTable::Rest::released: return context_.entries.what_became(held);
  }
  request.was_lost = !held->let_go();
  context_.tell_if_lost(held);
  context_.forget(held);
  late_attempts_.expect(*held);
  return std::nullopt;
}

Released Releaser::free(ReleaseRequest& request, Duration timeout) {
  request.deadline = later(BootClock::now(), timeout);
  return free(request);
}

Released Releaser::free(ReleaseRequest& request) {
  const auto& held = request.held;
  WakeOnExit wake(*context_.queues, request);
  try {
    if (held->to_be_reopened) throw not_reopened();
    if (!request.was_lost && hand_over_.hand_over(request)) {
      if (request.unclaimed) release(request.unclaimed, context_.options.timeouts.release);
      wake.keep_silent();  // the name was not free for a moment: whoever were woken would look in vain
      return Released::freed;
    }
    if (!request.was_lost && !request.yields)
      if (const auto end = lingering_.linger(request)) return *end;
    const auto left = context_.retry(request.deadline, request.unanswered,
                                     [&](Deadline until) { return context_.table->leave(held->key(), until); });
    late_attempts_.bar(*held, request.deadline);
    return after_release(request, left);
  } catch (const Error& error) { return release_later(request, error); }
}

Released Releaser::after_release(const ReleaseRequest& request, const store::Left& left) {
  const auto& held = request.held;
  // Of a node the grant that was given back and one that comes late have one token, so that none of them is kept.
  if (held->mode() == Mode::node && held->unanswered)
    context_.renewer.free_later({held->name(), held->owner(), {}, true, held->longest(), held->mode()});
  if (request.was_lost) return Released::was_lost;
  // Where there was nothing to free although it was ours when asked first, an attempt without an answer has freed it.
  const bool waited = request.trusted_until != Instant{} && BootClock::now() >= request.trusted_until;
  if (!left.was_there && !request.unanswered && !waited) {
    context_.events->counters().lost.of(Loss::refused).add();
    context_.events->emit(Event::Kind::lost, *held, {}, "it was no longer ours when it was released");
    return Released::was_lost;
  }
  if (left.still_held) return Released::still_held;
  context_.events->emit(Event::Kind::released, *held);
  return Released::freed;
}

Released Releaser::release_later(const ReleaseRequest& request, const Error& why) {
  const auto& held = request.held;
  context_.renewer.free_later({held->name(),
                               held->owner(),
                               {},
                               false,
                               held->longest(),
                               held->mode(),
                               held->to_be_reopened ? held->row_token() : Token{}});
  if (request.was_lost) return Released::was_lost;
  context_.events->emit(Event::Kind::released, *held, {},
                        fmt::format("not confirmed; at the latest it ends with its lease: {}", why.what()));
  return Released::unconfirmed;
}

std::vector<Releaser::Given> Releaser::free_together(std::span<const ReleaseRequest> all, Duration timeout) {
  std::vector<Given> ends(all.size());
  std::vector<std::pair<ReleaseRequest, std::size_t>> plain;
  const auto alone = [&](const ReleaseRequest& one, std::size_t place) {
    ends[place].finish = [this, request = one](Duration time) mutable { return free(request, time); };
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto one = all[i];
    const bool handed = !one.was_lost && context_.queues->anybody(one.held->name());
    if (handed || one.held->mode() != Mode::exclusive || one.held->to_be_reopened) alone(one, i);
    else plain.emplace_back(std::move(one), i);
  }
  const auto name = [](const auto& each) -> const std::string& { return each.first.held->name(); };
  std::ranges::stable_sort(plain, {}, name);
  std::vector<store::LeaseKey> keys;
  std::vector<std::pair<ReleaseRequest, std::size_t>> sent;
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
  bool silent = false, may_pass = true;
  try {
    const Deadline deadline = std::min(later(BootClock::now(), timeout), context_.soon());
    if (keys.size() == 1) answers.front() = context_.table->release(keys.front(), deadline);
    else answers = context_.table->release_together(keys, deadline);
  } catch (const Failure& failure) {
    for (auto& each : sent) each.first.unanswered.add(failure);
    const auto cause = failure.cause();
    silent = cause == Cause::timed_out || cause == Cause::disconnected || cause == Cause::refused;
    may_pass = is_transient(cause);
    if (may_pass && cause != Cause::locked) context_.events->emit_retry(failure);
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const auto& [one, place] = sent[i];
    if (!answers[i]) {
      alone(one, place);  // which tells what is wrong if it still is
      ends[place].locked = may_pass;
      ends[place].silent = silent;
      ends[place].unanswered = one.unanswered;
      continue;
    }
    const WakeOnExit wake(*context_.queues, one);
    ends[place].end = after_release(one, {*answers[i]});
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
  std::vector<Given> given(all.size());
  for (std::size_t first = 0; first < all.size();) {
    const auto some = std::min<std::size_t>(all.size() - first, std::max(1U, context_.options.combine));
    std::vector<ReleaseRequest> requests;
    std::vector<std::size_t> places;
    for (auto i = first; i < first + some; ++i) {
      ReleaseRequest one{all[i]};
      given[i].end = leave(one);
      if (given[i].end) continue;
      requests.push_back(std::move(one));
      places.push_back(i);
    }
    auto freed = free_together(requests, left());
    for (std::size_t i = 0; i < freed.size(); ++i) given[places[i]] = std::move(freed[i]);
    first += some;
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
