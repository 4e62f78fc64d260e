// What the end of an engine means to the calls that are under way on it.
#include "api/calls.hpp"

#include "support/eventually.hpp"

#include <doctest/doctest.h>
#include <dlock/error.hpp>

#include <thread>

using namespace std::chrono_literals;
using dlock::BootClock;
using dlock::later;
using dlock::api::Call;
using dlock::api::Calls;
using dlock::test::eventually;

TEST_CASE("the end of an engine stops the calls that wait, and returns when they have left") {
  const auto calls = std::make_shared<Calls>();
  std::atomic<bool> waits{false}, left{false};
  std::jthread other([&] {
    Call call(calls);
    const auto stop = call.stopped_by({});
    CHECK_NOTHROW(call.check());
    waits = true;
    CHECK(eventually([&] { return stop.stop_requested(); }));
    CHECK_THROWS_AS(call.check(), dlock::Error);
    left = true;
  });
  REQUIRE(eventually([&] { return waits.load(); }));
  calls->end(dlock::Instant::max());
  CHECK(left);
}

TEST_CASE("a call is stopped by its caller as well as by the end, whichever is first") {
  const auto calls = std::make_shared<Calls>(), others = std::make_shared<Calls>();
  std::stop_source caller;
  Call first(calls), second(calls), third(others);
  const auto by_caller = first.stopped_by(caller.get_token());
  CHECK_FALSE(by_caller.stop_requested());
  caller.request_stop();
  CHECK(by_caller.stop_requested());
  CHECK_NOTHROW(first.check());  // an empty answer is the caller's own wish
  std::stop_source patient;
  const auto by_end = second.stopped_by(patient.get_token()), elsewhere = third.stopped_by(patient.get_token());
  CHECK_FALSE(by_end.stop_requested());
  calls->end(BootClock::now());
  CHECK(by_end.stop_requested());
  CHECK_FALSE(elsewhere.stop_requested());
}

TEST_CASE("the end waits for no call of its own thread, and for those of others until its deadline only") {
  const auto calls = std::make_shared<Calls>();
  std::atomic<bool> inside{false}, over{false};
  {
    const Call mine(calls);
    const Call nested(calls);
    calls->end(dlock::Instant::max());
  }
  std::jthread other([&] {
    const Call call(calls);
    inside = true;
    eventually([&] { return over.load(); }, 60s);
  });
  REQUIRE(eventually([&] { return inside.load(); }));
  const auto deadline = later(BootClock::now(), 50ms);
  calls->end(deadline);
  CHECK(BootClock::now() >= deadline);
  CHECK_FALSE(over);
  over = true;
}
