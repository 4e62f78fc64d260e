// How a herd is driven.
#include "herd.hpp"

#include "grant_order.hpp"
#include "helper.hpp"
#include "seats.hpp"
#include "tools/benchmark/peers/raw_peer.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr char open = 'o', wait_for_it = 'w', done = 'd', farewell = 'f';
constexpr auto name = "dlock-bench/herd";
constexpr auto commit_name = "dlock-bench/herd/commit";
constexpr int pairs = 20;
// Longer than any herd takes: a waiter that is never granted the lock shall say so.
constexpr auto patience = 30min;

void wait_and_leave(dlock::Engine& locks, bool fifo, Seat& seat) noexcept {
  try {
    dlock::LockOptions options;
    options.fairness = fifo ? dlock::Fairness::fifo : dlock::Fairness::barging;
    seat.started = now();
    auto lock = locks.try_lock_for(name, patience, options);
    seat.granted = now();
    if (!lock) throw std::runtime_error("waited in vain");
    seat.token = number(lock->token());
    write_down(seat.owner, lock->owner().c_str());
    seat.leaving = now();
    give_back(std::move(*lock));
    seat.left = now();
  } catch (const std::exception& error) { write_down(seat.failure, error.what()); }
}

// A process of waiters, a thread each.
void serve(Line& line, const HerdOptions& options, std::span<Seat> seats) {
  line.hear(open);
  dlock::Engine locks(options.target.url, engine_options(options.target));
  line.say(open);
  line.hear(wait_for_it);
  std::vector<std::jthread> threads;
  threads.reserve(seats.size());
  for (auto& seat : seats) threads.emplace_back([&] { wait_and_leave(locks, options.fifo, seat); });
  threads.clear();
  line.say(done);
  line.hear(farewell);
}

class Herd {
 public:
  explicit Herd(const HerdOptions& options) : options_(options), seats_(options.threads + options.processes) {
    if (options.threads > 0) start(seats_.all().first(options.threads));
    for (auto& seat : seats_.all().subspan(options.threads)) start({&seat, 1});
  }

  std::span<Seat> seats() const { return seats_.all(); }

  void tell(char what) {
    for (auto& helper : helpers_) helper.line().say(what);
  }
  void hear(char what) {
    for (auto& helper : helpers_) helper.line().hear(what);
  }
  void wait_until_all_have_asked() {
    for (auto& seat : seats_.all())
      while (seat.started == 0) std::this_thread::sleep_for(5ms);
  }
  double processor() const {
    double sum = 0;
    for (const auto& helper : helpers_) sum += helper.processor();
    return sum;
  }

 private:
  void start(std::span<Seat> seats) {
    helpers_.emplace_back([this, seats](Line& line) { serve(line, options_, seats); });
  }
  const HerdOptions& options_;
  const Seats seats_;
  std::deque<Helper> helpers_;
};

Rate counted(RawPeer& peer, const Herd& herd, double seconds) {
  const auto before = peer.load();
  const auto processor = herd.processor();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto passed = std::chrono::duration<double>(Clock::now() - begin).count();
  const auto used = herd.processor() - processor;
  const auto after = peer.load();
  Rate rate;
  if (before.statements && after.statements)
    rate.statements = static_cast<double>(*after.statements - *before.statements) / passed;
  rate.bytes_written = static_cast<double>(after.bytes_written - before.bytes_written) / passed;
  rate.processor = used / passed;
  rate.connections = after.connections;
  return rate;
}

// Once every waiter has its ticket.
Tickets tickets_of(dlock::Engine& locks, std::size_t count) {
  for (;; std::this_thread::sleep_for(50ms)) {
    Tickets tickets;
    for (const auto& waiter : locks.waiters(name)) tickets[waiter.owner] = waiter.ticket;
    if (tickets.size() == count) return tickets;
  }
}

}  // namespace

HerdResult run_herd(const HerdOptions& options) {
  Herd herd(options);
  HerdResult result;
  result.setup = setup_of(options.target);
  dlock::Engine locks(options.target.url, engine_options(options.target));
  const auto peer = raw_peer(options.target);
  herd.tell(open);
  herd.hear(open);
  for (int i = 0; i < pairs; ++i) {
    const auto begin = now();
    auto lock = take(locks, commit_name);
    const auto middle = now();
    give_back(std::move(lock));
    result.commits.push_back(middle - begin);
    result.commits.push_back(now() - middle);
  }
  auto lock = take(locks, name);
  const double settling = std::min(options.seconds, 2.0);
  std::this_thread::sleep_for(std::chrono::duration<double>(settling));
  result.idle = counted(*peer, herd, settling);
  herd.tell(wait_for_it);
  herd.wait_until_all_have_asked();
  if (options.fifo) tickets_of(locks, herd.seats().size());
  // Until those who look at ever longer intervals have come to their longest.
  std::this_thread::sleep_for(std::chrono::duration<double>(settling));
  result.held = counted(*peer, herd, options.seconds);
  // Only now: who was stopped for longer than its ticket lives has drawn another one.
  Tickets tickets;
  if (options.fifo) tickets = tickets_of(locks, herd.seats().size());
  const auto released = now();
  give_back(std::move(lock));
  herd.hear(done);
  herd.tell(farewell);
  judge(herd.seats(), options.threads, released, options.fifo ? &tickets : nullptr, result);
  return result;
}

}  // namespace bench
