// Which signals a thread of the library takes, and that nothing which leaves its function ends the process.
#include "types/thread.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <stdexcept>

using dlock::Thread;

TEST_CASE("a thread takes no signal that is meant for the program, but those that its own faults raise") {
  sigset_t blocked;
  sigemptyset(&blocked);
  {
    Thread thread;
    thread.start([&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked); });
  }
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) CHECK_MESSAGE(sigismember(&blocked, own) == 0, own);
  for (const int other : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE, SIGALRM, SIGRTMIN})
    CHECK_MESSAGE(sigismember(&blocked, other) == 1, other);
  sigset_t here;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &here);
  CHECK(sigismember(&here, SIGTERM) == 0);
}

TEST_CASE("an exception ends the thread, and not the process") {
  Thread thread;
  thread.start([] { throw std::runtime_error("out of something"); });
  thread.finish();
  CHECK_FALSE(thread.started());
}
