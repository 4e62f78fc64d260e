// This file knows how signals are waited for.
#include "tools/migrate/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>
#include <thread>

namespace dlock::tools::migrate {
namespace {

std::atomic<int> first_signal{0};

sigset_t both() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

void say(std::string_view text) {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

void watch(std::stop_source stop) {
  const auto set = both();
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    int none = 0;
    if (!first_signal.compare_exchange_strong(none, signal)) ::_exit(128 + signal);
    say("dlock-migrate: stopping after the step under way; once more to cut it off\n");
    stop.request_stop();
  }
}

}  // namespace

Signals::Signals() {
  const auto set = both();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(watch, stop_).detach();
}

Signals::~Signals() = default;

int Signals::received() noexcept { return first_signal.load(); }

}  // namespace dlock::tools::migrate
