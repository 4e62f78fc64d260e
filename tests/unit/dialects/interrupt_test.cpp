// What ends a wait for a descriptor.
#include "dialects/interrupt.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <thread>

using namespace dlock;
using dialects::Interrupt;
using Ended = Interrupt::Ended;

TEST_CASE("a wait ends when its descriptor is ready, when it is interrupted, or when its time has come") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  Interrupt interrupt;
  const auto never = Deadline::max();
  const auto soon = later(BootClock::now(), std::chrono::milliseconds{20});
  CHECK(interrupt.wait(pipe[0], POLLIN, soon) == Ended::late);
  CHECK(BootClock::now() >= soon);
  CHECK(interrupt.wait(-1, 0, BootClock::now()) == Ended::late);
  interrupt.raise();
  interrupt.raise();
  CHECK(interrupt.wait(pipe[0], POLLIN, never) == Ended::interrupted);
  CHECK(interrupt.wait(pipe[0], POLLIN, BootClock::now()) == Ended::late);
  {
    const std::jthread other([&] { interrupt.raise(); });
    CHECK(interrupt.wait(pipe[0], POLLIN, never) == Ended::interrupted);
  }
  REQUIRE(::write(pipe[1], "x", 1) == 1);
  interrupt.raise();
  CHECK(interrupt.wait(pipe[0], POLLIN, never) == Ended::ready);
  char byte = 0;
  REQUIRE(::read(pipe[0], &byte, 1) == 1);
  CHECK(interrupt.wait(pipe[0], POLLIN, never) == Ended::interrupted);
  ::close(pipe[1]);
  CHECK(interrupt.wait(pipe[0], POLLIN, never) == Ended::ready);
  ::close(pipe[0]);
}
