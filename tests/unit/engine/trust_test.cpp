// How long a lease is trusted, and how waits between attempts grow.
#include "engine/lease/trust.hpp"

#include "engine/backoff.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::engine;
using namespace std::chrono_literals;

TEST_CASE("the margin is a twentieth of the lease, within its bounds, unless it was chosen") {
  CHECK(margin_of(2s, 1ms, {}) == 100ms);
  CHECK(margin_of(10ms, 1ms, {}) == 1ms);
  CHECK(margin_of(10ms, 3ms, {}) == 3ms);
  CHECK(margin_of(30s, 1ms, {}) == 500ms);
  CHECK(margin_of(10s, 1s, {}) == 1s);
  CHECK(margin_of(30s, 1ms, Duration{0}) == 0ms);
  CHECK(margin_of(30s, 1ms, 2s) == 2s);
}

TEST_CASE("trust is counted from the sending, ends before the lease, and never before it was sent") {
  const Instant sent{1h};
  CHECK(trust_end(sent, 30s, 500ms) == sent + 29500ms);
  CHECK(trust_end(sent, 1ms, 1ms) == sent);
  CHECK(trust_end(sent, 1ms, 3ms) == sent);
  CHECK(trust_end(sent, Duration::max(), 500ms) == Instant::max());
}

TEST_CASE("the first repetition comes at once, later ones wait longer, never longer than the bound") {
  Backoff backoff(50ms);
  CHECK(backoff.next() == 0ms);
  for (int i = 0; i < 100; ++i) {
    const auto pause = backoff.next();
    CHECK(pause >= 5ms);
    CHECK(pause <= 50ms);
  }
}

TEST_CASE("looks at a busy lock begin every 20 ms and slow down to the floor, give or take a quarter") {
  PollingPauses polling(20ms, 100ms);
  const auto first = polling.next();
  CHECK(first >= 15ms);
  CHECK(first <= 25ms);
  for (int i = 0; i < 10; ++i) polling.next();
  const auto late = polling.next();
  CHECK(late >= 75ms);
  CHECK(late <= 125ms);
  CHECK(PollingPauses(20ms, 4ms).next() <= 5ms);
}
