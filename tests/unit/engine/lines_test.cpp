// This file knows what the lines of those who wait promise: one head, an order, and no wake-up lost.
#include "engine/lines.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <thread>

using namespace std::chrono_literals;
using dlock::BootClock;
using dlock::Instant;
using dlock::Name;
using dlock::engine::Held;
using dlock::engine::Lines;
using dlock::engine::Wish;
using dlock::later;
using dlock::test::far_longer;
using dlock::test::slowness;

namespace {

std::shared_ptr<Wish> wish(const std::string& owner, dlock::Duration lease = 1h) {
  Held::Terms terms;
  terms.lease = lease;
  return std::make_shared<Wish>(Name("n"), dlock::LockOptions{}, terms, owner, std::string(32, 'a'),
                                dlock::engine::JobRef{});
}

std::shared_ptr<Held> grant(const std::string& owner) {
  return std::make_shared<Held>(Name("n"), owner, dlock::Token{2}, Held::Terms{}, BootClock::now());
}

Instant soon() { return later(BootClock::now(), far_longer()); }

// Sleeps on a thread of its own, like a waiter, and has begun to when this returns.
std::future<Lines::Woken> sleeping(Lines& lines, const Lines::Seat& seat, Instant deadline = soon()) {
  return std::async(std::launch::async, [&lines, seat, deadline] { return lines.rest(seat, deadline, deadline, {}); });
}

Lines::Seat reserved(Lines& lines) {
  for (const auto give_up = soon(); BootClock::now() < give_up; std::this_thread::yield())
    if (auto seat = lines.reserve("n")) return seat;
  return nullptr;
}

}  // namespace

TEST_CASE("the first in line is its head, and the next one when it leaves") {
  Lines lines(1h);
  const auto first = lines.join(wish("1"), 0, true), second = lines.join(wish("2"), 0, true);
  CHECK(lines.attend(first).head);
  CHECK_FALSE(lines.attend(second).head);
  CHECK(lines.anybody("n"));
  CHECK_FALSE(lines.anybody("m"));
  auto woken = sleeping(lines, second);
  CHECK_FALSE(lines.leave(first));
  CHECK(woken.get() == Lines::Woken::head);
  CHECK(lines.attend(second).head);
  lines.leave(second);
  CHECK_FALSE(lines.anybody());
}

TEST_CASE("tickets come before those who have none, in their order, whenever they come") {
  Lines lines(1h);
  const auto barger = lines.join(wish("b"), 0, true), five = lines.join(wish("5"), 5, true), three = lines.join(wish("3"), 3, true);
  CHECK(lines.attend(three).head);
  CHECK_FALSE(lines.attend(five).head);
  CHECK_FALSE(lines.attend(barger).head);
  lines.give_ticket(barger, 4);
  lines.leave(three);
  CHECK(lines.attend(barger).head);
  lines.leave(barger);
  CHECK(lines.attend(five).head);
  lines.leave(five);
}

TEST_CASE("a ring before the sleep is heard in it, and one before the look is not") {
  Lines lines(1h);
  const auto seat = lines.join(wish("1"), 0, true);
  lines.attend(seat);
  lines.ring("n");
  CHECK(lines.rest(seat, soon(), soon(), {}) == Lines::Woken::rung);
  lines.ring("n");
  lines.attend(seat);
  CHECK(lines.rest(seat, BootClock::now(), soon(), {}) == Lines::Woken::time);
  lines.leave(seat);
}

TEST_CASE("who sleeps wakes in milliseconds") {
  Lines lines(1h);
  const auto seat = lines.join(wish("1"), 0, true);
  auto best = std::chrono::microseconds::max();
  for (int i = 0; i < 10; ++i) {
    lines.attend(seat);
    auto woken = sleeping(lines, seat);
    REQUIRE(reserved(lines) == seat);
    const dlock::test::Stopwatch time;
    CHECK(lines.settle(seat, nullptr));
    CHECK(woken.get() == Lines::Woken::rung);
    best = std::min(best, time.elapsed());
  }
  CHECK(best < 100ms * std::min(slowness(), 3));
  lines.leave(seat);
}

TEST_CASE("a head that was to hear of a release, and has not looked yet when it comes, is told to look") {
  Lines lines(1h);
  const auto first = lines.join(wish("1"), 0, true), next = lines.join(wish("2"), 0, true);
  lines.attend(first);
  lines.attend(next);
  auto woken = sleeping(lines, first);
  REQUIRE(reserved(lines) == first);
  REQUIRE(lines.settle(first, grant("1")));
  CHECK(woken.get() == Lines::Woken::handed);
  SUBCASE("for whoever it is") { lines.ring("n"); }
  SUBCASE("for somebody else by name") { lines.hear({false, {{"n", "3"}}}); }
  SUBCASE("of everything") { lines.ring_all(); }
  CHECK_FALSE(lines.attend(next).quiet);
  lines.leave(first);
  lines.leave(next);
}

TEST_CASE("a ring wakes the head and who observes, one for an owner only that owner") {
  Lines lines(1h);
  const auto head = lines.join(wish("h"), 0, true), next = lines.join(wish("2"), 0, true);
  const auto observer = lines.observe("n", "o");
  const auto past = BootClock::now();
  for (const auto& seat : {head, next, observer}) lines.attend(seat);
  lines.ring("n");
  CHECK(lines.rest(head, soon(), soon(), {}) == Lines::Woken::rung);
  CHECK(lines.rest(observer, soon(), soon(), {}) == Lines::Woken::rung);
  CHECK(lines.rest(next, past, soon(), {}) == Lines::Woken::time);
  for (const auto& seat : {head, next, observer}) lines.attend(seat);
  lines.hear({false, {{"n", "elsewhere"}}});
  CHECK(lines.rest(head, past, soon(), {}) == Lines::Woken::time);
  CHECK(lines.rest(head, soon(), soon(), {}) == Lines::Woken::time);  // but soon: it may not have been for nobody
  lines.attend(head);
  lines.hear({false, {{"n", "h"}, {"m", ""}}});
  CHECK(lines.rest(head, soon(), soon(), {}) == Lines::Woken::rung);
  CHECK(lines.attend(head).rung);
  lines.hear({true, {}});
  CHECK(lines.rest(head, soon(), soon(), {}) == Lines::Woken::rung);
  CHECK_FALSE(lines.attend(head).rung);  // not of its name
  for (const auto& seat : {head, next, observer}) lines.leave(seat);
}

TEST_CASE("a head whose name was granted in this process looks only a little after a ring from elsewhere") {
  Lines lines(1h);
  const auto first = lines.join(wish("1"), 0, true), next = lines.join(wish("2"), 0, true);
  lines.leave(first, true);
  lines.attend(next);
  SUBCASE("of its name") { lines.hear({false, {{"n", ""}}}); }
  SUBCASE("for it by name") { lines.hear({false, {{"n", "2"}}}); }
  SUBCASE("of everything") { lines.hear({true, {}}); }
  CHECK(lines.rest(next, BootClock::now(), soon(), {}) == Lines::Woken::time);
  CHECK(lines.rest(next, soon(), soon(), {}) == Lines::Woken::time);
  lines.attend(next);
  lines.ring("n");  // released
  CHECK(lines.rest(next, soon(), soon(), {}) == Lines::Woken::rung);
  lines.attend(next);
  lines.hear({false, {{"n", ""}}});
  CHECK(lines.rest(next, soon(), soon(), {}) == Lines::Woken::rung);
  lines.leave(next);
}

TEST_CASE("a sleeper becomes the head by a hand-over without waking up, and looks after a while") {
  constexpr auto a_while = 100ms;
  const auto begun = BootClock::now();
  Lines::Woken how{};
  dlock::Duration floor{1h}, lease{1h};
  SUBCASE("the longest time between two looks") { floor = a_while; }
  SUBCASE("the lease of the grant") { lease = a_while; }
  // Who was not asleep yet is told that it is the head: then once more.
  while (how != Lines::Woken::time && BootClock::now() < later(begun, far_longer())) {
    Lines lines(floor);
    const auto first = lines.join(wish("1", lease), 0, true);
    const auto next = lines.join(wish("2"), 0, true);
    lines.attend(first);
    lines.attend(next);
    auto handed = sleeping(lines, first), woken = sleeping(lines, next);
    REQUIRE(reserved(lines) == first);
    const auto settled = BootClock::now();
    REQUIRE(lines.settle(first, grant("1")));
    CHECK(handed.get() == Lines::Woken::handed);
    how = woken.get();
    if (how == Lines::Woken::time) CHECK(BootClock::now() >= later(settled, a_while));
    CHECK(lines.attend(next).head);
    lines.leave(first);
    lines.leave(next);
  }
  CHECK(how == Lines::Woken::time);
}

TEST_CASE("only a head that sleeps is reserved, and it wakes with what it was handed") {
  Lines lines(1h);
  const auto head = lines.join(wish("1"), 0, true), next = lines.join(wish("2"), 0, true);
  CHECK_FALSE(lines.reserve("n"));
  lines.attend(head);
  auto woken = sleeping(lines, head);
  const auto seat = reserved(lines);
  REQUIRE(seat == head);
  CHECK_FALSE(lines.reserve("n"));
  const auto held = grant("1");
  CHECK(lines.settle(seat, held));
  CHECK(woken.get() == Lines::Woken::handed);
  CHECK(lines.leave(head) == held);
  const auto standing = lines.attend(next);
  CHECK(standing.head);
  CHECK(standing.quiet);
  lines.leave(next);
}

TEST_CASE("who gave up while it was reserved is handed nothing, and the releaser is told") {
  Lines lines(1h);
  const auto head = lines.join(wish("1"), 0, true);
  lines.attend(head);
  auto woken = sleeping(lines, head, later(BootClock::now(), 1s * slowness()));
  const auto seat = reserved(lines);
  REQUIRE(seat);
  CHECK(woken.get() == Lines::Woken::time);
  CHECK_FALSE(lines.leave(head));
  CHECK_FALSE(lines.settle(seat, grant("1")));
}

TEST_CASE("a hand-over that failed wakes the head to look for itself") {
  Lines lines(1h);
  const auto head = lines.join(wish("1"), 0, true);
  lines.attend(head);
  auto woken = sleeping(lines, head);
  const auto seat = reserved(lines);
  REQUIRE(seat);
  CHECK(lines.settle(seat, nullptr, true));
  CHECK(woken.get() == Lines::Woken::rung);
  CHECK(lines.attend(head).ask);
  CHECK_FALSE(lines.attend(head).ask);
  lines.leave(head);
}

TEST_CASE("a poll does not end the sleep of one who is reserved, a stop does") {
  Lines lines(1h);
  const auto head = lines.join(wish("1"), 0, true);
  lines.attend(head);
  std::stop_source stop;
  auto woken = std::async(std::launch::async, [&] { return lines.rest(head, later(BootClock::now(), 50ms), soon(), stop.get_token()); });
  const auto seat = reserved(lines);
  if (seat) {  // else the poll came first, on a machine that was busy
    CHECK(woken.wait_for(200ms) == std::future_status::timeout);
    stop.request_stop();
    CHECK(woken.get() == Lines::Woken::stopped);
    lines.leave(head);
    CHECK_FALSE(lines.settle(seat, nullptr));
  } else {
    CHECK(woken.get() == Lines::Woken::time);
    lines.leave(head);
  }
}

TEST_CASE("rows are listed while their places are there, and a dead one is told") {
  Lines lines(1h);
  const auto one = lines.join(wish("1"), 7, true), two = lines.join(wish("2"), 0, true);
  CHECK(lines.rows(Lines::RowKind::depended_on).empty());
  lines.registered(one, Lines::RowKind::depended_on);
  REQUIRE(lines.rows(Lines::RowKind::depended_on).size() == 1);
  CHECK(lines.rows(Lines::RowKind::depended_on).front().owner == "1");
  lines.attend(one);
  lines.died(one);
  CHECK(lines.rest(one, soon(), soon(), {}) == Lines::Woken::rung);
  CHECK(lines.attend(one).dead);
  lines.give_ticket(one, 8);
  CHECK_FALSE(lines.attend(one).dead);
  lines.leave(one);
  CHECK(lines.rows(Lines::RowKind::depended_on).empty());
  lines.leave(two);
}
