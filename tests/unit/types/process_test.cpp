// What a fork() waits for, and what it does not.
#include "types/process.hpp"

#include "support/eventually.hpp"
#include "support/exit_status.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

using namespace std::chrono_literals;
using dlock::ForkLock;
using dlock::ForkUnlock;
using dlock::test::await_end;
using dlock::test::eventually;

namespace {

constexpr int tries = 5;
constexpr auto longest = 10s;  // that a fork() waits

// Whether a child of this moment finds it true. A fork() that has waited for as long as it may shows nothing: then no.
bool seen_by_child(const std::atomic<bool>& it) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(it ? 1 : 0);
  const bool waited_in_vain = std::chrono::steady_clock::now() - begin >= longest;
  const auto status = await_end(child);
  REQUIRE((status == 0 || status == 1));
  return !waited_in_vain && status == 1;
}

// The shortest time a fork() takes in so many tries: a busy machine makes some of them longer.
std::chrono::nanoseconds shortest_fork() {
  auto shortest = std::chrono::nanoseconds::max();
  const std::atomic<bool> nothing{false};
  for (int i = 0; i < tries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    seen_by_child(nothing);
    shortest = std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - begin);
  }
  return shortest;
}

struct Waiting {
  const ForkLock lock{}, nested{};
  const ForkUnlock unlock{};
};

// Somebody on another thread, from the construction to the destruction.
template <class Lease>
class Elsewhere {
 public:
  Elsewhere() {
    REQUIRE(eventually([&] { return inside_.load(); }));
  }

 private:
  std::atomic<bool> inside_{false};
  std::jthread thread_{[this](const std::stop_token& stop) {
    [[maybe_unused]] const Lease held;
    inside_ = true;
    eventually([&] { return stop.stop_requested(); }, 60s);
  }};
};

}  // namespace

TEST_CASE("a child is made when no fork lock is left on another thread") {
  for (int i = 0; i < tries; ++i) {
    std::atomic<bool> half_done{false}, forks{false};
    std::jthread other([&] {
      const ForkLock lock;
      const ForkLock nested;
      half_done = true;
      eventually([&] { return forks.load(); });
      std::this_thread::sleep_for(50ms);  // most likely it forks by now
      half_done = false;
    });
    REQUIRE(eventually([&] { return half_done.load(); }));
    forks = true;
    CHECK_FALSE(seen_by_child(half_done));
  }
}

TEST_CASE("neither its own fork locks nor one of a thread that waits hold a fork() up") {
  const ForkLock mine;
  const Elsewhere<Waiting> waits;
  CHECK(shortest_fork() < longest);
}

TEST_CASE("when a thread has waited, its fork lock counts again") {
  std::atomic<bool> half_done{false}, forks{false};
  std::jthread other([&] {
    const ForkLock lock;
    { const ForkUnlock unlock; }
    half_done = true;
    eventually([&] { return forks.load(); });
    std::this_thread::sleep_for(50ms);
    half_done = false;
  });
  REQUIRE(eventually([&] { return half_done.load(); }));
  forks = true;
  CHECK_FALSE(seen_by_child(half_done));
}

TEST_CASE("a fork lock that does not end holds a fork() up for ten seconds, not for ever") {
  const Elsewhere<ForkLock> endless;
  const std::atomic<bool> nothing{false};
  const auto begin = std::chrono::steady_clock::now();
  seen_by_child(nothing);
  CHECK(std::chrono::steady_clock::now() - begin >= longest);
}

TEST_CASE("a child has no fork locks but those of the thread it was made on, and its children wait for none") {
  const Elsewhere<ForkLock> endless;
  const pid_t child = ::fork();
  if (child == 0) {
    auto shortest = std::chrono::nanoseconds::max();
    for (int i = 0; i < tries; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const pid_t grandchild = ::fork();
      if (grandchild == 0) ::_exit(0);
      static_cast<void>(await_end(grandchild));
      { const ForkLock lock; }
      shortest = std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - begin);
    }
    ::_exit(shortest < longest ? 0 : 1);
  }
  CHECK(await_end(child) == 0);
}
