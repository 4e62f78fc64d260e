// Who awaits an event is woken by it, and not by those that are meant for others; none is missed.
#include "types/event_count.hpp"

#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <latch>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("an event that came after the count was read is not slept through") {
  EventCount count;
  const auto seen = count.read();
  count.advance(2);  // meant for somebody else, and it counts all the same
  CHECK(count.read() != seen);
  const auto before = BootClock::now();
  count.await(seen, later(before, 1h), 1);
  CHECK(BootClock::now() - before < 30s);
}

TEST_CASE("who awaits nothing is back by its deadline, also one that is over or never comes in this clock") {
  EventCount count;
  const auto before = BootClock::now();
  count.await(count.read(), later(before, 50ms), 1);
  count.await(count.read(), before, 1);
  count.await(count.read(), Instant::min(), 1);
  CHECK(BootClock::now() - before < 30s);
  std::atomic<bool> woken{false};
  const auto seen = count.read();
  std::jthread sleeper([&] {
    while (count.read() == seen) count.await(seen, Instant::max(), EventCount::everybody);
    woken = true;
  });
  count.advance();
  CHECK(eventually([&] { return woken.load(); }));
}

TEST_CASE("one advance wakes all who share a bit with it, and lets the others sleep") {
  constexpr std::array<EventCount::Whom, 4> bits{1, 2, 4, 1U << 31};
  // Who had not fallen asleep yet does not, whoever was meant: so it is tried until all had.
  const auto others_sleep_on = [&] {
    EventCount count;
    std::array<std::atomic<bool>, 4> awake{};
    std::latch started(4);
    std::vector<std::jthread> sleepers;
    const auto seen = count.read();
    for (std::size_t i = 0; i < bits.size(); ++i)
      sleepers.emplace_back([&, i] {
        started.count_down();
        count.await(seen, Instant::max(), bits[i]);
        awake[i] = true;
      });
    started.wait();
    std::this_thread::sleep_for(5ms);
    count.advance(bits[1] | bits[3]);
    CHECK(eventually([&] { return awake[1] && awake[3]; }));
    const bool slept_on = !awake[0] && !awake[2];
    count.advance();
    CHECK(eventually([&] { return awake[0] && awake[2]; }));
    return slept_on;
  };
  CHECK(eventually(others_sleep_on));
}

TEST_CASE("two threads that take turns by an event count miss none of thousands") {
  EventCount count;
  std::atomic<int> turn{0};
  constexpr int turns = 2000;
  const auto take_turns = [&](int me) {
    for (int mine = me; mine < turns; mine += 2) {
      for (auto seen = count.read(); turn != mine; seen = count.read())
        count.await(seen, Instant::max(), EventCount::Whom{1} << me);
      ++turn;
      count.advance(EventCount::Whom{1} << (1 - me));
    }
  };
  std::jthread other(take_turns, 1);
  take_turns(0);
  CHECK(eventually([&] { return turn == turns; }));
}
