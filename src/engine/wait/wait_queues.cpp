// Who is the head of a line, and whom a release, a notification or a job's grant wakes: at once, or a little later.
#include "engine/wait/wait_queues.hpp"

#include "types/mutant.hpp"

#include <algorithm>
#include <exception>

namespace dlock::engine {
namespace {

// After a notification for somebody else, or for what this process holds as far as it knows: what it told of is
// somebody's by then, or nobody's.
constexpr Duration silence = std::chrono::milliseconds{20};

bool same(const std::weak_ptr<Lease>& one, const std::shared_ptr<Lease>& other) noexcept {
  return !one.owner_before(other) && !other.owner_before(one);
}

}  // namespace

void WaitQueues::insert(WaitQueue& line, const WaiterPtr& waiter) {
  const auto ticket = waiter->status_.ticket;
  const auto later_than = [ticket](const WaiterPtr& other) REQUIRES(waiters_mutex) {
    return other->status_.ticket == 0 || other->status_.ticket > ticket;
  };
  const auto before = ticket == 0 ? line.queue.end() : std::ranges::find_if(line.queue, later_than);
  const bool first = before == line.queue.begin();
  if (first && !line.queue.empty()) line.queue.front()->status_.head = false;
  line.queue.insert(before, waiter);
  if (first) stir(promote(line));
}

WaitQueues::WaiterPtr WaitQueues::promote(WaitQueue& line, Duration quiet, bool soon) {
  if (line.queue.empty() || line.queue.front()->status_.head) return nullptr;
  auto& head = *line.queue.front();
  head.status_.head = true;
  head.soon_ = soon;
  if (quiet > Duration{} && head.state_ == Waiter::State::asleep) {
    head.nudge_ = later(BootClock::now(), quiet);  // it need not wake up to go on sleeping
  } else {
    head.status_.quiet = quiet > Duration{};
    head.promoted_ = true;
  }
  return line.queue.front();
}

void WaitQueues::stir(const WaiterPtr& waiter) {
  if (waiter) waiter->stir();
}

WaitQueues::WaiterPtr WaitQueues::join(std::shared_ptr<WaitRequest> wanted, std::int64_t ticket, bool takes,
                                       std::function<void()> news, bool quiet) {
  auto waiter = std::make_shared<Waiter>(std::move(wanted), ticket, takes, std::move(news));
  std::vector<std::shared_ptr<Lease>> asked;
  {
    const MutexLock guard(mutex_, waiters_mutex);
    asked = listening(*waiter);
    ++waiting_;
    auto& line = queues_[waiter->name_];
    const bool goes_round = takes && line.goes_round();
    insert(line, waiter);
    waiter->led_at_once_ = waiter->status_.head;
    waiter->status_.quiet = quiet || goes_round;
    waiter->soon_ = goes_round;
  }
  for (const auto& held : asked)
    if (!planted("asked_silent_here")) on_wait_(held);
  return waiter;
}

std::vector<std::shared_ptr<Lease>> WaitQueues::listening(const Waiter& waiter) const {
  std::vector<std::shared_ptr<Lease>> all;
  const auto [from, to] = told_.equal_range(waiter.name_);
  for (auto each = from; each != to; ++each)
    if (auto held = each->second.lock(); held && !held->ended() && wants(waiter, *held)) all.push_back(std::move(held));
  return all;
}

// Whether it waits for somebody to let go, and not to enter what its own job holds.
bool WaitQueues::wants(const Waiter& waiter, const Lease& held) {
  if (held.said().job.empty()) return true;
  return !waiter.request_->by_job || waiter.request_->options.job.name() != held.said().job;
}

void WaitQueues::tell(const std::shared_ptr<Lease>& held) noexcept {
  try {
    const MutexLock guard(mutex_, waiters_mutex);
    if (held->ended()) return;
    const auto [from, to] = told_.equal_range(held->name());
    if (std::none_of(from, to, [&](const auto& each) { return same(each.second, held); })) {
      told_.emplace(held->name(), held);
      ++telling_;
    }
  } catch (const std::exception&) {  // out of memory: whoever asks again is told
  }
  if (wanted_since(*held)) on_wait_(held);
}

void WaitQueues::tell_no_more(const std::shared_ptr<Lease>& held) noexcept {
  if (telling_.load() == 0) return;
  const MutexLock guard(mutex_, waiters_mutex);
  const auto [from, to] = told_.equal_range(held->name());
  for (auto each = from; each != to;) {
    if (!each->second.expired() && !same(each->second, held)) {
      ++each;
    } else {
      each = told_.erase(each);
      --telling_;
    }
  }
}

std::optional<WantedSince> WaitQueues::wanted_since(const Lease& held) const {
  if (!anybody()) return std::nullopt;
  const MutexLock guard(mutex_, waiters_mutex);
  const auto found = queues_.find(held.name());
  if (found == queues_.end()) return std::nullopt;
  std::optional<WantedSince> wanted;
  for (const auto& waiter : found->second.queue)
    if (wants(*waiter, held)) wanted = joined(wanted, WantedSince{waiter->request_->since, waiter->request_->mode});
  return wanted;
}

WaitQueues::WaiterPtr WaitQueues::observe(const std::string& name, std::string owner) {
  auto waiter = std::make_shared<Waiter>(name, std::move(owner));
  const MutexLock guard(mutex_, waiters_mutex);
  ++waiting_;
  queues_[name].observers.push_back(waiter);
  return waiter;
}

void WaitQueues::give_ticket(const WaiterPtr& waiter, std::int64_t ticket) {
  const MutexLock guard(mutex_, waiters_mutex);
  waiter->status_.ticket = ticket;
  waiter->status_.dead = false;
  auto& line = queues_[waiter->name_];
  std::erase(line.queue, waiter);
  waiter->status_.head = false;
  insert(line, waiter);
  stir(promote(line));
}

void WaitQueues::rename(const WaiterPtr& waiter, const std::string& owner) {
  const MutexLock guard(mutex_, waiters_mutex);
  waiter->request_->owner = waiter->owner_ = owner;
}

WaitQueues::WaiterPtr WaitQueues::remove(const WaiterPtr& waiter, Duration quiet, bool granted, bool soon) {
  const auto found = queues_.find(waiter->name_);
  if (found == queues_.end()) return nullptr;
  auto& line = found->second;
  const auto gone = std::erase(line.queue, waiter) + std::erase(line.observers, waiter);
  waiting_ -= gone;
  line.granted = line.granted || granted;
  line.blocked = line.blocked && !granted;
  line.unheard = line.unheard && !granted;
  auto promoted = promote(line, quiet, soon);
  if (line.idle() && !soon && !line.goes_round()) drop(found);
  return promoted;
}

std::shared_ptr<Lease> WaitQueues::leave(const WaiterPtr& waiter, bool granted) {
  const MutexLock guard(mutex_, waiters_mutex);
  stir(remove(waiter, {}, granted));
  waiter->state_ = Waiter::State::left;
  waiter->news_ = nullptr;
  waiter->row_ = RowKind::none;
  return std::move(waiter->grant_);
}

bool WaitQueues::anybody(const std::string& name) const {
  if (!anybody()) return false;
  const MutexLock guard(mutex_, waiters_mutex);
  const auto found = queues_.find(name);
  return found != queues_.end() && !found->second.queue.empty();
}

bool WaitQueues::anybody_listens(const std::string& name) const {
  if (!anybody()) return false;
  const MutexLock guard(mutex_, waiters_mutex);
  const auto found = queues_.find(name);
  return found != queues_.end() && !(found->second.queue.empty() && found->second.observers.empty());
}

void WaitQueues::wake_head(std::string_view name, bool yields) {
  if (!anybody() && rounds_.load() == 0) return;
  const MutexLock guard(mutex_, waiters_mutex);
  const auto found = queues_.find(name);
  if (found == queues_.end()) return;
  auto& line = found->second;
  line.granted = false;
  if (line.idle()) return drop(found);
  if (!planted("round_not_ended")) end_round(line);
  if (!line.queue.empty()) line.queue.front()->status_.yields |= yields;
  wake(line, {}, false);
}

void WaitQueues::let_go_unheard(std::string_view name) {
  if (!anybody()) return;
  {
    const MutexLock guard(mutex_, waiters_mutex);
    if (const auto found = queues_.find(name); found != queues_.end()) found->second.unheard = true;
  }
  wake_head(name);
}

void WaitQueues::wake_job(const std::string& name, std::string_view job) {
  if (!anybody()) return;
  const MutexLock guard(mutex_, waiters_mutex);
  const auto found = queues_.find(name);
  if (found == queues_.end()) return;
  for (const auto& waiter : found->second.queue) {
    if (!waiter->request_->by_job || waiter->request_->options.job.name() != job) continue;
    waiter->notified_ = true;
    waiter->stir();
  }
}

void WaitQueues::hear(const dialects::Notification& heard) {
  if (!anybody()) return;
  const MutexLock guard(mutex_, waiters_mutex);
  if (heard.everything)
    for (auto& [name, line] : queues_) wake(line, {}, true);
  for (const auto& one : heard.names)
    if (const auto found = queues_.find(one.name); found != queues_.end()) wake(found->second, one.head, false);
}

void WaitQueues::wake_all() {
  const MutexLock guard(mutex_, waiters_mutex);
  for (auto each = queues_.begin(); each != queues_.end();) {
    const auto now = each++;
    now->second.granted = false;
    if (now->second.idle()) {
      drop(now);
    } else {
      end_round(now->second);
      wake(now->second, {}, true);
    }
  }
}

void WaitQueues::wake(WaitQueue& line, std::string_view owner, bool everything) {
  const auto rouse = [everything](Waiter& waiter) REQUIRES(waiters_mutex) {
    waiter.everything_ = everything && (waiter.everything_ || !waiter.notified_);
    waiter.notified_ = true;
    waiter.stir();
  };
  for (const auto& observer : line.observers) rouse(*observer);
  if (line.queue.empty()) return;
  auto& head = *line.queue.front();
  head.status_.quiet = false;  // that was the release to hear of
  if (!line.granted && (owner.empty() || head.owner_ == owner)) return rouse(head);
  const auto then = later(BootClock::now(), silence);
  if (head.nudge_ <= then) return;
  head.nudge_ = then;
  head.stir();
}

std::map<std::string, std::size_t, std::less<>> WaitQueues::counts() const {
  std::map<std::string, std::size_t, std::less<>> counts;
  const MutexLock guard(mutex_, waiters_mutex);
  for (const auto& [name, line] : queues_)
    if (const auto count = line.queue.size() + line.observers.size(); count > 0) counts.emplace(name, count);
  return counts;
}

std::vector<dialects::AwaitedLock> WaitQueues::awaited() const {
  std::vector<dialects::AwaitedLock> awaited;
  const MutexLock guard(mutex_, waiters_mutex);
  for (const auto& [name, line] : queues_) {
    if (line.idle()) continue;
    const auto& waiter = line.queue.empty() ? line.observers.front() : line.queue.front();
    awaited.push_back({name, waiter->holder_});
  }
  return awaited;
}

bool WaitQueues::saw(const WaiterPtr& waiter, std::string holder) {
  const MutexLock guard(mutex_, waiters_mutex);
  if (waiter->holder_ == holder) return false;
  waiter->holder_ = std::move(holder);
  return true;
}

void WaitQueues::blocked(const WaiterPtr& waiter, bool yes) {
  const MutexLock guard(mutex_, waiters_mutex);
  if (const auto found = queues_.find(waiter->name_); found != queues_.end()) found->second.blocked = yes;
}

bool WaitQueues::blocked(const std::string& name) const {
  const MutexLock guard(mutex_, waiters_mutex);
  const auto found = queues_.find(name);
  return found != queues_.end() && found->second.blocked;
}

void WaitQueues::registered(const WaiterPtr& waiter, RowKind kind) {
  const MutexLock guard(mutex_, waiters_mutex);
  waiter->row_ = kind;
}

std::vector<WaitQueues::WaiterRow> WaitQueues::rows(RowKind kind) const {
  std::vector<WaiterRow> rows;
  const MutexLock guard(mutex_, waiters_mutex);
  for (const auto& [name, line] : queues_)
    for (const auto* waiters : {&line.queue, &line.observers})
      for (const auto& waiter : *waiters)
        if (waiter->row_ == kind) rows.push_back({waiter, name, waiter->owner_});
  return rows;
}

void WaitQueues::died(const WaiterPtr& waiter) {
  const MutexLock guard(mutex_, waiters_mutex);
  if (!planted("dead_row_stays_dead")) waiter->status_.dead = true;
  waiter->notified_ = true;
  waiter->stir();
}

void WaitQueues::revived(const WaiterPtr& waiter) {
  const MutexLock guard(mutex_, waiters_mutex);
  waiter->status_.dead = false;
}

}  // namespace dlock::engine
