// How a request waits for its answer: until it is there, until the deadline, or until its caller asks to stop.
#include "dialects/readiness.hpp"

#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <stop_token>
#include <string>

using namespace dlock::test;
using namespace std::chrono_literals;
using dlock::BootClock;
using dlock::Deadline;
using dlock::Instant;
using dlock::later;
using dlock::dialects::drain;
using dlock::dialects::look_at_rest;
using dlock::dialects::Unasked;
using dlock::dialects::wait_until_ready;

namespace {

struct Pipe {
  std::array<int, 2> ends{};
  Pipe() { REQUIRE(::pipe(ends.data()) == 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int out() const { return ends[0]; }
  void fill() const { REQUIRE(::write(ends[1], "x", 1) == 1); }
};

// Whether a wait of an hour ends at once when it is stopped, and a stop that came before ends it, too.
bool ends_with_a_stop(const Pipe& pipe) {
  std::stop_source stop;
  const Deadline deadline(later(BootClock::now(), 1h), stop.get_token());
  auto waiting = std::async(std::launch::async, [&] { return wait_until_ready(pipe.out(), POLLIN, deadline); });
  const bool waits = waiting.wait_for(50ms) == std::future_status::timeout;
  const Stopwatch time;
  stop.request_stop();
  const bool none = waiting.get() == 0 && wait_until_ready(pipe.out(), POLLIN, deadline) == 0;
  return waits && none && time.elapsed() < 1s * slowness();
}

}  // namespace

TEST_CASE("a wait ends when the descriptor is ready, and not before its deadline otherwise") {
  const Pipe pipe;
  std::stop_source stop;
  for (const bool stoppable : {false, true}) {
    const Stopwatch time;
    const auto until = later(BootClock::now(), 100ms);
    CHECK(wait_until_ready(pipe.out(), POLLIN, stoppable ? Deadline(until, stop.get_token()) : Deadline(until)) == 0);
    CHECK(time.elapsed() >= 100ms);
  }
  const Deadline hour(later(BootClock::now(), 1h), stop.get_token());
  auto waiting = std::async(std::launch::async, [&] { return wait_until_ready(pipe.out(), POLLIN, hour); });
  CHECK(waiting.wait_for(50ms) == std::future_status::timeout);
  pipe.fill();
  CHECK(waiting.get() == POLLIN);
  CHECK(wait_until_ready(pipe.out(), POLLIN, later(BootClock::now(), 1h)) == POLLIN);
}

TEST_CASE("a wait ends at once when its caller asks to stop, also where no descriptor is left to be told by") {
  const auto before = count_descriptors();
  {
    const Pipe pipe;
    CHECK(ends_with_a_stop(pipe));
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const auto all = limit;
    limit.rlim_cur = static_cast<rlim_t>(pipe.ends[1]) + 1;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(ends_with_a_stop(pipe));
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &all) == 0);
  }
  CHECK(count_descriptors() == before);
}

TEST_CASE("what is said on a connection that is given up is read until the other end has ended it") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  CHECK_FALSE(drain(ends[0], Instant::min()));
  CHECK(look_at_rest(ends[1]) == Unasked::ended);  // it is told that nothing more comes
  const std::string answer(10'000, 'x');
  REQUIRE(::send(ends[1], answer.data(), answer.size(), 0) == static_cast<ssize_t>(answer.size()));
  CHECK_FALSE(drain(ends[0], later(BootClock::now(), 20ms)));
  auto drained = std::async(std::launch::async, [&] { return drain(ends[0], Instant::max()); });
  ::close(ends[1]);
  CHECK(drained.get());
  ::close(ends[0]);
}

TEST_CASE("the end of a connection is seen before anything is sent on it, also behind what was said before") {
  for (const bool speaks : {false, true}) {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    CHECK(look_at_rest(ends[0]) == Unasked::nothing);
    if (speaks) {
      REQUIRE(::send(ends[1], "x", 1, 0) == 1);
      CHECK(look_at_rest(ends[0]) == Unasked::said_something);
    }
    ::shutdown(ends[1], SHUT_WR);
    CHECK(look_at_rest(ends[0]) == Unasked::ended);
    ::close(ends[1]);
    CHECK(look_at_rest(ends[0]) == Unasked::ended);
    ::close(ends[0]);
  }
}
