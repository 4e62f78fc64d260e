// How signals are waited for; and how long the database has to answer once a statement is to be cut off.
#include "tools/migrate/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <string_view>
#include <thread>

namespace dlock::tools::migrate {
namespace {

constexpr int farewell_s = 10;  // for the database to cut off a statement, and for that to be written down

std::atomic<int> first_signal{0};

sigset_t both() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

void say(std::string_view text) { static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size())); }

int next_of(const sigset_t& set) {
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {}
  return signal;
}

// 0: none came in this time.
int next_of(const sigset_t& set, timespec longest) {
  const int signal = sigtimedwait(&set, nullptr, &longest);
  return signal < 0 ? 0 : signal;
}

void watch(std::stop_source stop, std::stop_source cancel) {
  const auto set = both();
  first_signal = next_of(set);
  say("dlock-migrate: stopping after the step under way; once more to cut it off\n");
  stop.request_stop();
  next_of(set);
  say("dlock-migrate: having the database cut off the step under way\n");
  cancel.request_stop();
  next_of(set, {farewell_s, 0});
  say("dlock-migrate: not waiting any longer for the database's answer; run it again to go on\n");
  ::_exit(128 + first_signal.load());
}

}  // namespace

Signals::Signals(Meaning meaning) {
  const auto set = both();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (meaning == Meaning::leave) {
    std::thread([set] { ::_exit(128 + next_of(set)); }).detach();
    return;
  }
  std::thread(watch, stop_, cancel_).detach();
}

Signals::~Signals() = default;

int Signals::received() noexcept { return first_signal.load(); }

}  // namespace dlock::tools::migrate
