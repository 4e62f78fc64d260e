// This file knows the race between a grant and a signal: the signal wins, and the grant is given back.
#include "waiting.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>

namespace dlock::tools {
namespace {

constexpr int farewell_ms = 80;  // for a statement under way, before this process leaves without it

// What the thread and its starter share; the thread may outlive the wait, but not the process.
struct Work {
  int done = ::eventfd(0, EFD_CLOEXEC);
  std::exception_ptr error{};
};

// The next signal that ends a wait, or 0.
int ending_signal(int descriptor) {
  signalfd_siginfo info{};
  while (::read(descriptor, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGHUP || number == SIGINT || number == SIGTERM || number == SIGQUIT) return number;
  }
  return 0;
}

bool is_done(int descriptor, int timeout_ms) {
  pollfd source{descriptor, POLLIN, 0};
  return ::poll(&source, 1, timeout_ms) > 0;
}

}  // namespace

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGCHLD, SIGTTOU})
    sigaddset(&set, number);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  sigdelset(&set, SIGTTOU);  // blocked, so that the terminal can be taken back from the background; never read
  ::signal(SIGPIPE, SIG_IGN);
  descriptor_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) throw std::runtime_error(std::strerror(errno));
}

Signals::~Signals() { ::close(descriptor_); }

int wait_for(const Signals& signals, const std::function<void(std::stop_token)>& work) {
  const auto shared = std::make_shared<Work>();
  if (shared->done < 0) throw std::runtime_error(std::strerror(errno));
  std::jthread thread([shared, &work](const std::stop_token& stop) {
    try {
      work(stop);
    } catch (...) {
      shared->error = std::current_exception();
    }
    const std::uint64_t one = 1;
    static_cast<void>(::write(shared->done, &one, sizeof one));
  });
  int ended_by = 0;
  while (!is_done(shared->done, 0)) {
    std::array<pollfd, 2> sources{pollfd{signals.descriptor(), POLLIN, 0}, pollfd{shared->done, POLLIN, 0}};
    ::poll(sources.data(), sources.size(), -1);
    ended_by = ending_signal(signals.descriptor());
    if (ended_by == 0) continue;
    thread.request_stop();
    // Whatever hangs now holds a lock no longer than its lease.
    if (!is_done(shared->done, farewell_ms)) ::_exit(128 + ended_by);
  }
  thread.join();
  ::close(shared->done);
  // A signal may have come together with the end of the work.
  if (ended_by == 0) ended_by = ending_signal(signals.descriptor());
  if (ended_by == 0 && shared->error) std::rethrow_exception(shared->error);
  return ended_by;
}

}  // namespace dlock::tools
