// A client's pairs one after another, and how each of them is timed.
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
Clock::time_point next_beginning(const Course& course, std::int64_t number) {
  if (course.rate <= 0) return Clock::now();
  const std::chrono::duration<double> after((course.offset + static_cast<double>(number)) / course.rate);
  const auto meant = course.from + std::chrono::duration_cast<Clock::duration>(after);
  if (meant < course.to) std::this_thread::sleep_until(meant);
  return meant;
}

void run(Client& client, const Course& course, Times& times, const std::atomic<bool>& failed) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // sleeps end when they should
  while (!failed && Clock::now() < course.from) {
    client.acquire();
    client.release();
    ++times.warm_ups;
  }
  for (std::int64_t number = 0; !failed; ++number) {
    const auto begin = next_beginning(course, number);
    // One at least, however busy the machine is, unless so few were wanted.
    if (begin >= course.to && (number > 0 || course.rate > 0)) return;
    client.acquire();
    const auto middle = Clock::now();
    client.release();
    times.add(begin, middle, Clock::now());
  }
}

}  // namespace

Course course_of(double seconds) {
  const auto in = [](double length) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(length));
  };
  const auto from = Clock::now() + in(std::min(seconds / 4, 1.0));
  return {from, from + in(seconds)};
}

std::vector<Course> courses(const Course& course, std::size_t clients) {
  std::vector<Course> all(clients, course);
  for (std::size_t i = 0; i < clients; ++i) all[i].offset = static_cast<double>(i) / static_cast<double>(clients);
  return all;
}

std::vector<Times> run_clients(const std::vector<std::unique_ptr<Client>>& clients,
                               const std::vector<Course>& courses) {
  std::vector<Times> times(clients.size());
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < clients.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          run(*clients[i], courses[i], times[i], failed);
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
