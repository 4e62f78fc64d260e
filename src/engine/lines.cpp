// This file knows how the lines move.
#include "engine/lines.hpp"

#include "types/mutant.hpp"

#include <algorithm>

namespace dlock::engine {
namespace {

// After a ring for somebody else, or for what this process holds as far as it knows: what it rang about is somebody's by
// then, or nobody's.
constexpr Duration silence = std::chrono::milliseconds{20};
constexpr Duration longest_rest = std::chrono::minutes{10};

}  // namespace

void Lines::place(Line& line, const Seat& seat) {
  const auto ticket = seat->standing_.ticket;
  const auto later_than = [ticket](const Seat& other) {
    return other->standing_.ticket == 0 || other->standing_.ticket > ticket;
  };
  const auto before = ticket == 0 ? line.queue.end() : std::ranges::find_if(line.queue, later_than);
  const bool first = before == line.queue.begin();
  if (first && !line.queue.empty()) line.queue.front()->standing_.head = false;
  line.queue.insert(before, seat);
  if (first) promote(line, {});
}

void Lines::promote(Line& line, Duration quiet) {
  if (line.queue.empty()) return;
  auto& head = *line.queue.front();
  if (head.standing_.head) return;
  head.standing_.head = true;
  if (quiet > Duration{} && head.state_ == Place::State::asleep) {
    head.nudge_ = later(BootClock::now(), quiet);  // it need not wake up to go on sleeping
  } else {
    head.standing_.quiet = quiet > Duration{};
    head.promoted_ = true;
  }
  head.changed_.notify_all();
}

Lines::Seat Lines::join(std::shared_ptr<Wish> wish, std::int64_t ticket, bool takes) {
  auto seat = std::make_shared<Place>();
  seat->name_ = wish->name.text();
  seat->owner_ = wish->owner;
  seat->wish_ = std::move(wish);
  seat->takes_ = takes;
  seat->standing_.ticket = ticket;
  const std::lock_guard guard(mutex_);
  ++waiting_;
  place(lines_[seat->name_], seat);
  return seat;
}

Lines::Seat Lines::observe(const std::string& name, std::string owner) {
  auto seat = std::make_shared<Place>();
  seat->name_ = name;
  seat->owner_ = std::move(owner);
  const std::lock_guard guard(mutex_);
  ++waiting_;
  lines_[name].observers.push_back(seat);
  return seat;
}

void Lines::give_ticket(const Seat& seat, std::int64_t ticket) {
  const std::lock_guard guard(mutex_);
  seat->standing_.ticket = ticket;
  seat->standing_.dead = false;
  auto& line = lines_[seat->name_];
  std::erase(line.queue, seat);
  seat->standing_.head = false;
  place(line, seat);
  promote(line, {});
}

void Lines::rename(const Seat& seat, const std::string& owner) {
  const std::lock_guard guard(mutex_);
  seat->wish_->owner = seat->owner_ = owner;
}

Lines::Standing Lines::attend(const Seat& seat) {
  const std::lock_guard guard(mutex_);
  auto standing = seat->standing_;
  standing.rung = seat->rung_ && !seat->everything_;
  seat->rung_ = seat->promoted_ = seat->everything_ = false;
  seat->nudge_ = Instant::max();
  seat->standing_.quiet = seat->standing_.yields = seat->standing_.ask = false;
  return standing;
}

const Wish& Lines::wish(const Seat& seat) { return *seat->wish_; }
std::int64_t Lines::ticket(const Seat& seat) { return seat->standing_.ticket; }

Lines::Woken Lines::rest(const Seat& seat, Instant until, Instant deadline, const std::stop_token& stop) {
  std::unique_lock guard(mutex_);
  auto& place = *seat;
  if (place.state_ == Place::State::awake) place.state_ = Place::State::asleep;
  const auto news = [&] {
    return place.state_ == Place::State::handed || (place.state_ == Place::State::asleep && (place.rung_ || place.promoted_));
  };
  for (;;) {
    const auto bound = place.state_ == Place::State::reserved ? deadline : std::min({until, place.nudge_, deadline});
    if (news() || stop.stop_requested() || BootClock::now() >= bound) break;
    // Being reserved or not, or nudged, is worth another look at the bound, too.
    const auto state = place.state_;
    const auto nudge = place.nudge_;
    // In pieces: the end of time, as this clock counts, is beyond what the condition variable's clock can count to.
    place.changed_.wait_until(guard, stop, std::min(bound, later(BootClock::now(), longest_rest)),
                              [&] { return news() || place.state_ != state || place.nudge_ != nudge; });
  }
  if (planted("wake_delayed") && news()) {
    guard.unlock();
    delay(std::chrono::milliseconds{400});
    guard.lock();
  }
  const auto state = place.state_;
  if (state == Place::State::asleep) place.state_ = Place::State::awake;
  if (state == Place::State::handed) return Woken::handed;
  if (stop.stop_requested()) return Woken::stopped;
  if (place.promoted_) return Woken::head;
  return place.rung_ ? Woken::rung : Woken::time;
}

void Lines::remove(const Seat& seat, Duration quiet, bool granted) {
  const auto found = lines_.find(seat->name_);
  if (found == lines_.end()) return;
  auto& line = found->second;
  const auto gone = std::erase(line.queue, seat) + std::erase(line.observers, seat);
  waiting_ -= gone;
  line.granted = line.granted || granted;
  line.blocked = line.blocked && !granted;
  promote(line, quiet);
  if (line.queue.empty() && line.observers.empty()) lines_.erase(found);
}

std::shared_ptr<Held> Lines::leave(const Seat& seat, bool granted) {
  const std::lock_guard guard(mutex_);
  remove(seat, {}, granted);
  seat->state_ = Place::State::left;
  seat->row_ = RowKind::none;
  return std::move(seat->grant_);
}

bool Lines::anybody(const std::string& name) const {
  if (!anybody()) return false;
  const std::lock_guard guard(mutex_);
  const auto found = lines_.find(name);
  return found != lines_.end() && !found->second.queue.empty();
}

Lines::Seat Lines::reserve(const std::string& name) {
  if (!anybody()) return nullptr;
  const std::lock_guard guard(mutex_);
  const auto found = lines_.find(name);
  if (found == lines_.end() || found->second.queue.empty()) return nullptr;
  const auto& head = found->second.queue.front();
  if (!head->takes_ || head->state_ != Place::State::asleep || head->standing_.dead) return nullptr;
  head->state_ = Place::State::reserved;
  head->changed_.notify_all();
  return head;
}

bool Lines::settle(const Seat& seat, std::shared_ptr<Held> grant, bool doubt) {
  const std::lock_guard guard(mutex_);
  if (seat->state_ == Place::State::left) return false;
  if (grant) {
    const auto quiet = std::min(seat->wish_->terms.lease, floor_);
    seat->grant_ = std::move(grant);
    seat->state_ = Place::State::handed;
    remove(seat, quiet, true);
  } else {
    seat->state_ = Place::State::asleep;
    if (!planted("silent_hand_over_failure")) seat->rung_ = true;
    seat->standing_.ask = doubt;
  }
  seat->changed_.notify_all();
  return true;
}

void Lines::ring(std::string_view name, bool yields) {
  if (!anybody()) return;
  const std::lock_guard guard(mutex_);
  const auto found = lines_.find(name);
  if (found == lines_.end()) return;
  auto& line = found->second;
  line.granted = false;
  if (!line.queue.empty()) line.queue.front()->standing_.yields |= yields;
  wake(line, {}, false);
}

void Lines::hear(const dialects::Rung& rung) {
  if (!anybody()) return;
  const std::lock_guard guard(mutex_);
  if (rung.everything)
    for (auto& [name, line] : lines_) wake(line, {}, true);
  for (const auto& one : rung.names)
    if (const auto found = lines_.find(one.name); found != lines_.end()) wake(found->second, one.head, false);
}

void Lines::ring_all() {
  const std::lock_guard guard(mutex_);
  for (auto& [name, line] : lines_) {
    line.granted = false;
    wake(line, {}, true);
  }
}

void Lines::wake(Line& line, std::string_view owner, bool everything) {
  const auto rouse = [everything](Place& place) {
    place.everything_ = everything && (place.everything_ || !place.rung_);
    place.rung_ = true;
    place.changed_.notify_all();
  };
  for (const auto& observer : line.observers) rouse(*observer);
  if (line.queue.empty()) return;
  auto& head = *line.queue.front();
  head.standing_.quiet = false;  // that was the release to hear of
  if (!line.granted && (owner.empty() || head.owner_ == owner)) return rouse(head);
  const auto then = later(BootClock::now(), silence);
  if (head.nudge_ <= then) return;
  head.nudge_ = then;
  head.changed_.notify_all();
}

std::vector<dialects::Watched> Lines::watched() const {
  std::vector<dialects::Watched> watched;
  const std::lock_guard guard(mutex_);
  for (const auto& [name, line] : lines_) {
    const auto& seat = line.queue.empty() ? line.observers.front() : line.queue.front();
    watched.push_back({name, seat->holder_});
  }
  return watched;
}

bool Lines::saw(const Seat& seat, std::string holder) {
  const std::lock_guard guard(mutex_);
  if (seat->holder_ == holder) return false;
  seat->holder_ = std::move(holder);
  return true;
}

void Lines::blocked(const Seat& seat, bool yes) {
  const std::lock_guard guard(mutex_);
  if (const auto found = lines_.find(seat->name_); found != lines_.end()) found->second.blocked = yes;
}

bool Lines::blocked(const Seat& seat) const {
  const std::lock_guard guard(mutex_);
  const auto found = lines_.find(seat->name_);
  return found != lines_.end() && found->second.blocked;
}

void Lines::registered(const Seat& seat, RowKind kind) {
  const std::lock_guard guard(mutex_);
  seat->row_ = kind;
}

std::vector<Lines::Row> Lines::rows(RowKind kind) const {
  std::vector<Row> rows;
  const std::lock_guard guard(mutex_);
  for (const auto& [name, line] : lines_)
    for (const auto* places : {&line.queue, &line.observers})
      for (const auto& seat : *places)
        if (seat->row_ == kind) rows.push_back({seat, name, seat->owner_});
  return rows;
}

void Lines::died(const Seat& seat) {
  const std::lock_guard guard(mutex_);
  if (!planted("dead_row_stays_dead")) seat->standing_.dead = true;
  seat->rung_ = true;
  seat->changed_.notify_all();
}

void Lines::revived(const Seat& seat) {
  const std::lock_guard guard(mutex_);
  seat->standing_.dead = false;
}

}  // namespace dlock::engine
