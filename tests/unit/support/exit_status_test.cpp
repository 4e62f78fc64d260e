// What the tests hear of a child process's end.
#include "support/exit_status.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <system_error>

using namespace dlock::test;

namespace {

template <class Work>
ExitStatus end_of(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  return await_end(child);
}

}  // namespace

TEST_CASE("a process that a signal has ended is told from one that says so by its exit status") {
  const auto by_signal = end_of([] { ::raise(SIGKILL); });
  const auto by_itself = end_of([] { ::_exit(128 + SIGKILL); });
  const auto number = end_of([] { ::_exit(SIGKILL); });
  CHECK(by_signal == killed_by(SIGKILL));
  CHECK(by_signal != killed_by(SIGTERM));
  CHECK(by_signal != 128 + SIGKILL);
  CHECK(by_signal != SIGKILL);
  CHECK(by_signal != exited(SIGKILL));
  CHECK(by_itself == 128 + SIGKILL);
  CHECK(by_itself != killed_by(SIGKILL));
  CHECK(number == SIGKILL);
  CHECK(number != killed_by(SIGKILL));
  CHECK(by_signal.text() == "signal 9");
  CHECK(by_itself.text() == "status 137");
}

TEST_CASE("a process that ends by itself has its exit status and no other") {
  for (const int status : {0, 1, 79, 127, 128, 255}) {
    const auto ended = end_of([status] { ::_exit(status); });
    CHECK(ended == status);
    CHECK(ended == exited(status));
    CHECK(ended != (status + 1) % 256);
  }
}

TEST_CASE("where there is no child nothing is said of its end") {
  for (const pid_t nobody : {-1, 0, ::getpid()}) CHECK_THROWS_AS(await_end(nobody), std::system_error);
}
