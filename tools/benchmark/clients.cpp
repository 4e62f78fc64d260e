// A client's pairs one after another, how each of them is timed, and for how long it warms up.
#include "clients.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace bench {
namespace {

// What is meant to begin now or later; with a rate it waits until then.
Clock::time_point next_beginning(const ThroughputRound& round, std::int64_t number) {
  if (round.rate <= 0) return Clock::now();
  const std::chrono::duration<double> after((round.offset + static_cast<double>(number)) / round.rate);
  const auto meant = round.from + std::chrono::duration_cast<Clock::duration>(after);
  if (meant < round.to) std::this_thread::sleep_until(meant);
  return meant;
}

void run(Client& client, const ThroughputRound& round, Times& times, const std::atomic<bool>& failed) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // sleeps end when they should
  while (!failed && Clock::now() < round.from) {
    client.acquire();
    client.release();
    ++times.warm_ups;
  }
  for (std::int64_t number = 0; !failed; ++number) {
    const auto begin = next_beginning(round, number);
    // One at least, however busy the machine is, unless so few were wanted.
    if (begin >= round.to && (number > 0 || round.rate > 0)) return;
    client.acquire();
    const auto middle = Clock::now();
    client.release();
    times.add(begin, middle, Clock::now());
  }
}

}  // namespace

ThroughputRound round_of(double seconds) {
  const auto in = [](double length) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(length));
  };
  const auto from = Clock::now() + in(std::min(seconds / 4, 1.0));
  return {from, from + in(seconds)};
}

std::vector<ThroughputRound> rounds(const ThroughputRound& round, std::size_t clients) {
  std::vector<ThroughputRound> all(clients, round);
  for (std::size_t i = 0; i < clients; ++i) all[i].offset = static_cast<double>(i) / static_cast<double>(clients);
  return all;
}

std::vector<Times> run_clients(const std::vector<std::unique_ptr<Client>>& clients,
                               const std::vector<ThroughputRound>& rounds) {
  std::vector<Times> times(clients.size());
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < clients.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          run(*clients[i], rounds[i], times[i], failed);
        } catch (...) {
          const std::lock_guard guard(mutex);
          if (!failure) failure = std::current_exception();
          failed = true;
        }
      });
  }
  if (failure) std::rethrow_exception(failure);
  return times;
}

}  // namespace bench
