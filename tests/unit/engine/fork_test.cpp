// What a child made by fork() finds of the engine's own state, whatever its parent's threads were doing.
#include "engine/lease/boot_timer.hpp"
#include "engine/lease/lease.hpp"
#include "engine/session_id.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using dlock::engine::BootTimer;
using dlock::engine::Lease;
using dlock::engine::LeaseTerms;
using dlock::test::eventually;

namespace {

// True: the child did it, and ended.
template <class Work>
bool child_can(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = -1;
  if (eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 10s * dlock::test::slowness()))
    return status == 0;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return false;
}

}  // namespace

TEST_CASE("a child made by fork() finds the mutexes of leases and alarms free, whoever had them") {
  constexpr int names = 100, children = 60;  // more than there are mutexes: each is asked for
  std::vector<std::shared_ptr<Lease>> all;
  for (int i = 0; i < names; ++i)
    all.push_back(std::make_shared<Lease>(dlock::Name("n" + std::to_string(i)), "owner", dlock::Token{1},
                                          LeaseTerms{30s, 1s}, dlock::BootClock::now()));
  const auto ask = [&] {
    for (const auto& held : all) static_cast<void>(held->key());
    BootTimer timer;
  };
  std::atomic<bool> over{false};
  int ended = 0;
  {
    std::vector<std::jthread> busy;
    for (int i = 0; i < 2; ++i)
      busy.emplace_back([&] {
        while (!over) ask();
      });
    while (ended < children && child_can(ask)) ++ended;
    over = true;
  }
  CHECK(ended == children);
}

TEST_CASE("a child made by fork() is another job than its parent, and stays the one it is") {
  const auto parent = dlock::engine::job_of_this_thread();
  CHECK(child_can([&] {
    const auto first = dlock::engine::job_of_this_thread();
    if (first == parent || first->id == parent->id || first != dlock::engine::job_of_this_thread()) ::_exit(1);
  }));
  CHECK(dlock::engine::job_of_this_thread() == parent);
}
