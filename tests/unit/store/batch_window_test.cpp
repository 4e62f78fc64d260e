// The promise that the leader of a batch waits for others where that is worth something, and no longer than that.
#include "store/batch_window.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace dlock;
using namespace dlock::store;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t fills_a_batch = 64;

// A clock that stands still unless it is told to go on; and leaders with an hour each, unless they have less.
struct StillWindow {
  std::atomic<std::size_t> crowd{0};
  BatchWindow window{fills_a_batch, crowd};
  Pace pace{true, 1ms, 100ms};
  Instant now = later(Instant{}, 24h);

  void open(BootClock::duration time = 1h) { window.open(pace, now, later(now, time)); }
  // Leaves without having waited.
  Instant leave(std::size_t requests) {
    window.open({}, now, later(now, 1h));
    window.leaves(now, requests);
    return now;
  }
  // For how long the leader waits if nothing else happens; less than nothing: it is closed.
  BootClock::duration waits(std::size_t queued) {
    const auto end = window.closes_at(queued, now);
    CHECK(window.is_open() == (end > now));
    return end > now ? end - now : -1ns;
  }
  // So many had their answers just now, and others are expected again.
  void answer(std::size_t requests) { window.arrived(leave(requests), 0); }
};

constexpr auto closed = -1ns;

}  // namespace

TEST_CASE("where batches are quick a leader waits for nobody") {
  StillWindow still;
  still.pace = {};
  still.leave(8);
  still.open();
  CHECK_FALSE(still.window.is_open());
  CHECK(still.waits(1) == closed);
}

TEST_CASE("a leader whom nobody has come before waits for nobody") {
  StillWindow still;
  still.open();
  CHECK(still.waits(1) == closed);
}

TEST_CASE("what is under way is waited for until it seems to hang, and once") {
  StillWindow still;
  still.leave(1);
  still.now = later(still.now, 30ms);
  still.open();
  CHECK(still.waits(1) == 70ms);
  still.now = later(still.now, 69ms);
  CHECK(still.waits(1) == 1ms);
  still.now = later(still.now, 1ms);
  CHECK(still.waits(1) == closed);
  still.open();
  CHECK(still.waits(1) == closed);
}

TEST_CASE("who waits for two is told for how long by the later one, and by the other once that has its answer") {
  StillWindow still;
  const auto first = still.leave(1);
  still.now = later(still.now, 60ms);
  const auto second = still.leave(1);
  still.now = later(still.now, 10ms);
  still.open();
  CHECK(still.waits(1) == 90ms);
  SUBCASE("the later one has its answer first") {
    still.window.arrived(second, 1);
    CHECK(still.waits(2) == 30ms);
    still.now = later(still.now, 30ms);
  }
  SUBCASE("the other one has its answer first") {
    still.window.arrived(first, 1);
    CHECK(still.waits(2) == 90ms);
    still.window.arrived(second, 1);
  }
  CHECK(still.waits(2) == closed);
}

TEST_CASE("those who have just had their answers are waited for, until seven eighths of them are back") {
  StillWindow still;
  const auto departed = still.leave(8);
  still.open();
  CHECK(still.waits(1) == 100ms);
  CHECK_FALSE(still.window.suffice(7));  // for they may leave no sooner
  still.window.arrived(departed, 0);
  CHECK(still.crowd == 8);
  CHECK(still.waits(6) == 1ms);
  CHECK_FALSE(still.window.suffice(6));
  CHECK(still.window.suffice(7));
  CHECK(still.waits(7) == closed);
}

TEST_CASE(
    "they are waited for no longer than the pace says, and after that for eight batches not at all where few came") {
  StillWindow still;
  still.answer(8);
  still.open();
  CHECK(still.waits(1) == 1ms);
  still.now = later(still.now, 1ms);
  CHECK(still.waits(3) == closed);
  for (int batch = 0; batch < 8; ++batch) {
    still.open();
    CHECK(still.waits(3) == closed);
  }
  still.open();
  CHECK(still.waits(3) == 1ms);
  still.now = later(still.now, 1ms);
  CHECK(still.waits(4) == closed);  // half of them is not few
  still.open();
  CHECK(still.waits(4) == 1ms);
}

TEST_CASE("a batch that is full waits neither for what is under way nor for company") {
  StillWindow still;
  still.leave(200);
  still.open();
  CHECK(still.waits(63) == 100ms);
  CHECK(still.window.suffice(64));
  CHECK(still.waits(64) == closed);
  still.answer(200);
  for (int batch = 0; batch < 8; ++batch) {  // few are left to come
    still.open();
    CHECK(still.waits(64) == closed);
  }
}

TEST_CASE("a leader waits for a quarter of its own time at most") {
  StillWindow still;
  still.leave(8);
  still.open(200ms);
  CHECK(still.waits(1) == 50ms);
  still.now = later(still.now, 50ms);
  CHECK(still.waits(1) == closed);
  still.answer(8);
  still.pace.company = 80ms;
  for (int batch = 0; batch < 8; ++batch) {
    still.open();
    still.waits(8);
  }
  still.window.arrived(still.leave(8), 0);
  still.now = later(still.now, 100ms);
  still.open(200ms);
  CHECK(still.waits(1) == 50ms);
  still.open(Instant::max() - still.now);
  CHECK(still.waits(1) == 80ms);
}

TEST_CASE("how many are under way with the request of another one is known") {
  StillWindow still;
  CHECK(still.window.under_way() == 0);
  const auto first = still.leave(1);
  still.now = later(still.now, 1ms);
  const auto second = still.leave(5);
  still.now = later(still.now, 1ms);
  const auto third = still.leave(3);
  CHECK(still.window.under_way() == 6);
  still.window.arrived(second, 4);
  CHECK(still.crowd == 9);
  CHECK(still.window.under_way() == 2);
  still.window.arrived(third, 0);
  still.window.arrived(first, 0);
  CHECK(still.window.under_way() == 0);
  CHECK(still.crowd == 1);
}
