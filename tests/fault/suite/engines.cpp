// Opens the engines of a client, with a slow observer.
#include "fault/suite/engines.hpp"

#include "fault/suite/history.hpp"
#include "fault/suite/watch.hpp"
#include "support/slowness.hpp"

#include <dlock/dlock.hpp>

#include <algorithm>
#include <atomic>
#include <memory>

namespace dlock::test {

using namespace std::chrono_literals;

namespace {

// Takes longer than a lease about some events, and about the first one in any case.
class SlowObserver {
 public:
  explicit SlowObserver(Duration lease) : lease_(lease) {}

  void operator()(const Event&) {
    if (!(first_->exchange(false) || one_in(4)) || told_to_stop()) return;
    pause(2 * lease_);
    note({boottime(), What::slow_observer});
  }

 private:
  Duration lease_;
  std::shared_ptr<std::atomic<bool>> first_ = std::make_shared<std::atomic<bool>>(true);  // of all copies
};

// Every other one.
bool lingers(const Orders& orders) { return orders.fenced && orders.place % 2 == 0; }

// Of four processes one asks the database for everything, in a statement for each.
bool asks_for_everything(const Orders& orders) { return orders.place % 4 == 3; }

}  // namespace

bool Engines::likes_lone_till() const { return orders_.place == 0; }

void Engines::count_batches() {
  const auto sent = first().stats().batches.sent;
  const std::lock_guard guard(mutex_);
  if (sent > batches_) note({boottime(), What::batch, "-", 0, 0, std::to_string(sent)});
  batches_ = std::max(batches_, sent);
}

bool Engines::keeps_row_of(const Lock& lock) {
  if (!lingers(orders_)) return false;
  const auto found = first().inspect(lock.name());
  return found && found->token > lock.token() && lock.valid();
}

Engine& Engines::opened(std::optional<Engine>& engine, bool first) {
  const std::lock_guard guard(mutex_);
  if (!engine) engine.emplace(orders_.url, options(first));
  return *engine;
}

EngineOptions Engines::options(bool first) const {
  EngineOptions options;
  options.lease = orders_.lease;
  options.label = orders_.id;
  options.timeouts.connect = 2s * slowness();
  options.timeouts.request = 1s * slowness();
  options.polling.longest = 40ms;
  options.ticket = 3 * orders_.lease;  // of who was killed while it waited
  if (lingers(orders_)) options.linger = orders_.lease;
  if (asks_for_everything(orders_)) {
    options.combine = 1;
    options.hand_overs.local = {};
  }
  if (first || one_in(2)) options.observer = SlowObserver(orders_.lease);
  return options;
}

}  // namespace dlock::test
