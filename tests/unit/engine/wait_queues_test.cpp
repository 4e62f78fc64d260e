// What the lines of those who wait promise: one head, an order, and no wake-up lost.
#include "engine/wait/wait_queues.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <thread>

using namespace std::chrono_literals;
using dlock::BootClock;
using dlock::Instant;
using dlock::later;
using dlock::Name;
using dlock::engine::Lease;
using dlock::engine::LeaseTerms;
using dlock::engine::WaitQueues;
using dlock::engine::WaitRequest;
using dlock::test::eventually;
using dlock::test::far_longer;
using dlock::test::slowness;

namespace {

std::shared_ptr<WaitRequest> wanted(const std::string& owner, dlock::Duration lease = 1h) {
  LeaseTerms terms;
  terms.lease = lease;
  return std::make_shared<WaitRequest>(Name("n"), dlock::LockOptions{}, terms, owner, std::string(32, 'a'),
                                       dlock::engine::JobRef{});
}

std::shared_ptr<Lease> grant(const std::string& owner) {
  return std::make_shared<Lease>(Name("n"), owner, dlock::Token{2}, LeaseTerms{}, BootClock::now());
}

// One that may go on in memory.
std::shared_ptr<Lease> keeping(const std::string& owner) {
  auto held = grant(owner);
  held->hand_over_state = {1, 5, BootClock::now()};
  return held;
}

Instant soon() { return later(BootClock::now(), far_longer()); }

// Sleeps on a thread of its own, like a waiter, and has begun to when this returns.
std::future<WaitQueues::WakeReason> sleeping(WaitQueues& queues, const WaitQueues::WaiterPtr& waiter,
                                             Instant deadline = soon()) {
  return std::async(std::launch::async,
                    [&queues, waiter, deadline] { return queues.rest(waiter, deadline, deadline, {}); });
}

WaitQueues::WaiterPtr reserved(WaitQueues& queues) {
  for (const auto give_up = soon(); BootClock::now() < give_up; std::this_thread::yield())
    if (auto waiter = queues.reserve("n")) return waiter;
  return nullptr;
}

}  // namespace

TEST_CASE("who only waits to enter what its own job holds asks nobody to let go") {
  WaitQueues queues(1h);
  int asked = 0;
  queues.on_wait([&](const std::shared_ptr<Lease>&) { ++asked; });
  const auto held = grant("1");
  dlock::LockOptions of_order;
  of_order.job = "order 1";
  held->say(of_order);
  queues.tell(held);
  auto own = wanted("2"), other = wanted("3"), closed = wanted("4");
  own->options.job = closed->options.job = "order 1";
  other->options.job = "order 2";
  own->by_job = other->by_job = true;
  const auto one = queues.join(own, 0, true);
  CHECK(asked == 0);
  queues.tell(held);
  CHECK(asked == 0);
  CHECK_FALSE(queues.wanted_since(*held));
  const auto two = queues.join(other, 0, true);
  CHECK(asked == 1);
  CHECK(queues.wanted_since(*held));
  const auto three = queues.join(closed, 0, true);
  CHECK(asked == 2);
}

TEST_CASE("the first in line is its head, and the next one when it leaves") {
  WaitQueues queues(1h);
  const auto first = queues.join(wanted("1"), 0, true), second = queues.join(wanted("2"), 0, true);
  CHECK(queues.attend(first).head);
  CHECK_FALSE(queues.attend(second).head);
  CHECK(queues.anybody("n"));
  CHECK_FALSE(queues.anybody("m"));
  auto woken = sleeping(queues, second);
  CHECK_FALSE(queues.leave(first));
  CHECK(woken.get() == WaitQueues::WakeReason::head);
  CHECK(queues.attend(second).head);
  queues.leave(second);
  CHECK_FALSE(queues.anybody());
}

TEST_CASE("tickets come before those who have none, in their order, whenever they come") {
  WaitQueues queues(1h);
  const auto barger = queues.join(wanted("b"), 0, true), five = queues.join(wanted("5"), 5, true),
             three = queues.join(wanted("3"), 3, true);
  CHECK(queues.attend(three).head);
  CHECK_FALSE(queues.attend(five).head);
  CHECK_FALSE(queues.attend(barger).head);
  queues.give_ticket(barger, 4);
  queues.leave(three);
  CHECK(queues.attend(barger).head);
  queues.leave(barger);
  CHECK(queues.attend(five).head);
  queues.leave(five);
}

TEST_CASE("a notification before the sleep is heard in it, and one before the look is not") {
  WaitQueues queues(1h);
  const auto waiter = queues.join(wanted("1"), 0, true);
  queues.attend(waiter);
  queues.wake_head("n");
  CHECK(queues.rest(waiter, soon(), soon(), {}) == WaitQueues::WakeReason::notified);
  queues.wake_head("n");
  queues.attend(waiter);
  CHECK(queues.rest(waiter, BootClock::now(), soon(), {}) == WaitQueues::WakeReason::time);
  queues.leave(waiter);
}

TEST_CASE("who sleeps wakes in milliseconds") {
  WaitQueues queues(1h);
  const auto waiter = queues.join(wanted("1"), 0, true);
  auto best = std::chrono::microseconds::max();
  for (int i = 0; i < 10; ++i) {
    queues.attend(waiter);
    auto woken = sleeping(queues, waiter);
    REQUIRE(reserved(queues) == waiter);
    const dlock::test::Stopwatch time;
    CHECK(queues.settle(waiter, nullptr));
    CHECK(woken.get() == WaitQueues::WakeReason::notified);
    best = std::min(best, time.elapsed());
  }
  CHECK(best < 100ms * std::min(slowness(), 3));
  queues.leave(waiter);
}

TEST_CASE("a head that was to hear of a release, and has not looked yet when it comes, is told to look") {
  WaitQueues queues(1h);
  const auto first = queues.join(wanted("1"), 0, true), next = queues.join(wanted("2"), 0, true);
  queues.attend(first);
  queues.attend(next);
  auto woken = sleeping(queues, first);
  REQUIRE(reserved(queues) == first);
  REQUIRE(queues.settle(first, grant("1")));
  CHECK(woken.get() == WaitQueues::WakeReason::handed);
  SUBCASE("for whoever it is") { queues.wake_head("n"); }
  SUBCASE("for somebody else by name") { queues.hear({false, {{"n", "3"}}}); }
  SUBCASE("of everything") { queues.wake_all(); }
  CHECK_FALSE(queues.attend(next).quiet);
  queues.leave(first);
  queues.leave(next);
}

TEST_CASE("a notification wakes the head and who observes, one for an owner only that owner") {
  WaitQueues queues(1h);
  const auto head = queues.join(wanted("h"), 0, true), next = queues.join(wanted("2"), 0, true);
  const auto observer = queues.observe("n", "o");
  const auto past = BootClock::now();
  for (const auto& waiter : {head, next, observer}) queues.attend(waiter);
  queues.wake_head("n");
  CHECK(queues.rest(head, soon(), soon(), {}) == WaitQueues::WakeReason::notified);
  CHECK(queues.rest(observer, soon(), soon(), {}) == WaitQueues::WakeReason::notified);
  CHECK(queues.rest(next, past, soon(), {}) == WaitQueues::WakeReason::time);
  for (const auto& waiter : {head, next, observer}) queues.attend(waiter);
  queues.hear({false, {{"n", "elsewhere"}}});
  CHECK(queues.rest(head, past, soon(), {}) == WaitQueues::WakeReason::time);
  CHECK(queues.rest(head, soon(), soon(), {}) ==
        WaitQueues::WakeReason::time);  // but soon: it may not have been for nobody
  queues.attend(head);
  queues.hear({false, {{"n", "h"}, {"m", ""}}});
  CHECK(queues.rest(head, soon(), soon(), {}) == WaitQueues::WakeReason::notified);
  CHECK(queues.attend(head).notified);
  queues.hear({true, {}});
  CHECK(queues.rest(head, soon(), soon(), {}) == WaitQueues::WakeReason::notified);
  CHECK_FALSE(queues.attend(head).notified);  // not of its name
  for (const auto& waiter : {head, next, observer}) queues.leave(waiter);
}

TEST_CASE("a head whose name was granted in this process looks only a little after a notification from elsewhere") {
  WaitQueues queues(1h);
  const auto first = queues.join(wanted("1"), 0, true), next = queues.join(wanted("2"), 0, true);
  queues.leave(first, true);
  queues.attend(next);
  SUBCASE("of its name") { queues.hear({false, {{"n", ""}}}); }
  SUBCASE("for it by name") { queues.hear({false, {{"n", "2"}}}); }
  SUBCASE("of everything") { queues.hear({true, {}}); }
  CHECK(queues.rest(next, BootClock::now(), soon(), {}) == WaitQueues::WakeReason::time);
  CHECK(queues.rest(next, soon(), soon(), {}) == WaitQueues::WakeReason::time);
  queues.attend(next);
  queues.wake_head("n");  // released
  CHECK(queues.rest(next, soon(), soon(), {}) == WaitQueues::WakeReason::notified);
  queues.attend(next);
  queues.hear({false, {{"n", ""}}});
  CHECK(queues.rest(next, soon(), soon(), {}) == WaitQueues::WakeReason::notified);
  queues.leave(next);
}

TEST_CASE("a sleeper becomes the head by a hand-over without waking up, and looks after a while") {
  constexpr auto a_while = 100ms;
  const auto begun = BootClock::now();
  WaitQueues::WakeReason how{};
  dlock::Duration floor{1h}, lease{1h};
  SUBCASE("the longest time between two looks") { floor = a_while; }
  SUBCASE("the lease of the grant") { lease = a_while; }
  // Who was not asleep yet is told that it is the head: then once more.
  while (how != WaitQueues::WakeReason::time && BootClock::now() < later(begun, far_longer())) {
    WaitQueues queues(floor);
    const auto first = queues.join(wanted("1", lease), 0, true);
    const auto next = queues.join(wanted("2"), 0, true);
    queues.attend(first);
    queues.attend(next);
    auto handed = sleeping(queues, first), woken = sleeping(queues, next);
    REQUIRE(reserved(queues) == first);
    const auto settled = BootClock::now();
    REQUIRE(queues.settle(first, grant("1")));
    CHECK(handed.get() == WaitQueues::WakeReason::handed);
    how = woken.get();
    if (how == WaitQueues::WakeReason::time) CHECK(BootClock::now() >= later(settled, a_while));
    CHECK(queues.attend(next).head);
    queues.leave(first);
    queues.leave(next);
  }
  CHECK(how == WaitQueues::WakeReason::time);
}

TEST_CASE("only a head that sleeps is reserved, and it wakes with what it was handed") {
  WaitQueues queues(1h);
  const auto head = queues.join(wanted("1"), 0, true), next = queues.join(wanted("2"), 0, true);
  CHECK_FALSE(queues.reserve("n"));
  queues.attend(head);
  auto woken = sleeping(queues, head);
  const auto waiter = reserved(queues);
  REQUIRE(waiter == head);
  CHECK_FALSE(queues.reserve("n"));
  const auto held = grant("1");
  CHECK(queues.settle(waiter, held));
  CHECK(woken.get() == WaitQueues::WakeReason::handed);
  CHECK(queues.leave(head) == held);
  const auto status = queues.attend(next);
  CHECK(status.head);
  CHECK(status.quiet);
  queues.leave(next);
}

TEST_CASE("who comes while its name goes from thread to thread in memory is next, and looks at nothing at once") {
  WaitQueues queues(1h);
  const auto hand_to = [&](const std::string& owner, std::shared_ptr<Lease> held) {
    const auto waiter = queues.join(wanted(owner), 0, true);
    queues.attend(waiter);
    auto woken = sleeping(queues, waiter);
    REQUIRE(reserved(queues) == waiter);
    REQUIRE(queues.settle(waiter, std::move(held)));
    CHECK(woken.get() == WaitQueues::WakeReason::handed);
    queues.leave(waiter);
  };
  const auto looks_at_once = [&] {
    const auto waiter = queues.join(wanted("next"), 0, true);
    const auto status = queues.attend(waiter);
    CHECK(status.head);
    queues.leave(waiter);
    return !status.quiet;
  };
  CHECK_FALSE(queues.is_next_in_line("n"));
  hand_to("1", grant("1"));  // by a statement that keeps no tokens
  CHECK_FALSE(queues.is_next_in_line("n"));
  CHECK(looks_at_once());
  // It is over after some ms without another hand-over, so that a slow machine may come too late.
  CHECK(eventually([&] {
    hand_to("2", keeping("2"));
    return queues.is_next_in_line("n") && !looks_at_once();
  }));
  CHECK_FALSE(queues.is_next_in_line("m"));
  CHECK(eventually([&] { return !queues.is_next_in_line("n"); }));
  CHECK(looks_at_once());
  hand_to("3", keeping("3"));
  SUBCASE("a release by a statement ends it") { queues.wake_head("n"); }
  SUBCASE("also where somebody is in line") {
    const auto other = queues.join(wanted("other"), 0, true);
    queues.wake_head("n");
    queues.leave(other);
  }
  SUBCASE("anything may have happened") { queues.wake_all(); }
  CHECK_FALSE(queues.is_next_in_line("n"));
  CHECK(looks_at_once());
  CHECK(queues.counts().empty());
  CHECK(queues.awaited().empty());
}

TEST_CASE("who was to be handed what a release frees by a statement after all is woken by that") {
  WaitQueues queues(1h);
  const auto holder = queues.join(wanted("1"), 0, true);
  queues.attend(holder);
  auto handed = sleeping(queues, holder);
  REQUIRE(reserved(queues) == holder);
  REQUIRE(queues.settle(holder, keeping("1")));
  CHECK(handed.get() == WaitQueues::WakeReason::handed);
  queues.leave(holder);
  const auto next = queues.join(wanted("2"), 0, true);
  queues.attend(next);
  auto woken = sleeping(queues, next);
  queues.wake_head("n");
  CHECK(woken.get() == WaitQueues::WakeReason::notified);
  queues.leave(next);
}

TEST_CASE("who gave up while it was reserved is handed nothing, and the releaser is told") {
  WaitQueues queues(1h);
  const auto head = queues.join(wanted("1"), 0, true);
  queues.attend(head);
  auto woken = sleeping(queues, head, later(BootClock::now(), 1s * slowness()));
  const auto waiter = reserved(queues);
  REQUIRE(waiter);
  CHECK(woken.get() == WaitQueues::WakeReason::time);
  CHECK_FALSE(queues.leave(head));
  CHECK_FALSE(queues.settle(waiter, grant("1")));
}

TEST_CASE("a hand-over that failed wakes the head to look for itself") {
  WaitQueues queues(1h);
  const auto head = queues.join(wanted("1"), 0, true);
  queues.attend(head);
  auto woken = sleeping(queues, head);
  const auto waiter = reserved(queues);
  REQUIRE(waiter);
  CHECK(queues.settle(waiter, nullptr, true));
  CHECK(woken.get() == WaitQueues::WakeReason::notified);
  CHECK(queues.attend(head).ask);
  CHECK_FALSE(queues.attend(head).ask);
  queues.leave(head);
}

TEST_CASE("a poll does not end the sleep of one who is reserved, a stop does") {
  WaitQueues queues(1h);
  const auto head = queues.join(wanted("1"), 0, true);
  queues.attend(head);
  std::stop_source stop;
  auto woken = std::async(std::launch::async,
                          [&] { return queues.rest(head, later(BootClock::now(), 50ms), soon(), stop.get_token()); });
  const auto waiter = reserved(queues);
  if (waiter) {  // else the poll came first, on a machine that was busy
    CHECK(woken.wait_for(200ms) == std::future_status::timeout);
    stop.request_stop();
    CHECK(woken.get() == WaitQueues::WakeReason::stopped);
    queues.leave(head);
    CHECK_FALSE(queues.settle(waiter, nullptr));
  } else {
    CHECK(woken.get() == WaitQueues::WakeReason::time);
    queues.leave(head);
  }
}

TEST_CASE("rows are listed while their places are there, and a dead one is told") {
  WaitQueues queues(1h);
  const auto one = queues.join(wanted("1"), 7, true), two = queues.join(wanted("2"), 0, true);
  CHECK(queues.rows(WaitQueues::RowKind::depended_on).empty());
  queues.registered(one, WaitQueues::RowKind::depended_on);
  REQUIRE(queues.rows(WaitQueues::RowKind::depended_on).size() == 1);
  CHECK(queues.rows(WaitQueues::RowKind::depended_on).front().owner == "1");
  queues.attend(one);
  queues.died(one);
  CHECK(queues.rest(one, soon(), soon(), {}) == WaitQueues::WakeReason::notified);
  CHECK(queues.attend(one).dead);
  queues.give_ticket(one, 8);
  CHECK_FALSE(queues.attend(one).dead);
  queues.leave(one);
  CHECK(queues.rows(WaitQueues::RowKind::depended_on).empty());
  queues.leave(two);
}
