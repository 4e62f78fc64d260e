// Looks at a lock that is held, and writes down what was found before anything depends on it.
#include "fault/suite/watch.hpp"

#include "support/slowness.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

namespace dlock::test {

using namespace std::chrono_literals;

// A pipe takes it even when the disk is full.
void note(const Record& record) {
  const auto line = record.line();
  if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::_Exit(3);
}

void pause(Duration length) { std::this_thread::sleep_for(length); }

bool one_in(std::size_t outcomes) {
  thread_local std::mt19937 random{std::random_device{}()};
  return std::uniform_int_distribution<std::size_t>(0, outcomes - 1)(random) == 0;
}

bool told_to_stop() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0;
}

Watch::Watch(Lock& lock, Nanoseconds asked, const Share& share) : lock_(lock) { begin(asked, share); }

void Watch::begin(Nanoseconds asked, const Share& share) {
  trusted_ = claimed_ = noted_ = 0;
  share_ = share;
  note({boottime(), What::grant, lock_.name(), number(lock_.token()), asked, share.text()});
  look();
}

bool Watch::look() {
  if (lost_) return false;
  const auto now = boottime();  // before asking: what is valid after this moment was valid at it
  if (const auto left = lock_.remaining(); left > Duration{}) {
    trusted_ = now;
    claimed_ = now + std::chrono::nanoseconds(left).count();
    if (trusted_ > noted_ + 20'000'000) tell();
    return true;
  }
  lost_ = true;
  const auto loss = lock_.loss();
  // Nobody refused it: it was trusted until its time had come.
  if (loss == Loss::unconfirmed) trusted_ = std::min(claimed_, now);
  tell();
  note({boottime(), What::loss, lock_.name(), number(lock_.token()), 0,
        loss ? std::string(to_string(*loss)) : "without a reason"});
  await_word();
  return false;
}

void Watch::tell() {
  if (trusted_ == 0) return;
  noted_ = trusted_;
  note({boottime(), What::held, lock_.name(), number(lock_.token()), trusted_});
}

void Watch::trust_no_longer() { claimed_ = trusted_; }

void Watch::work(Duration length) {
  for (const auto end = boottime() + std::chrono::nanoseconds(length).count(); boottime() < end; look()) pause(1ms);
}

void Watch::release() {
  look();
  tell();
  const auto asked = boottime();
  const auto outcome = lock_.release();
  note({boottime(), What::release, lock_.name(), number(lock_.token()), asked, std::string(to_string(outcome))});
}

// Counted in naps: a process that is stopped hears nothing.
void Watch::await_word() {
  const auto lost = lock_.lost();
  for (int naps = 2000 * slowness(); naps > 0 && !lost.stop_requested(); --naps) pause(1ms);
  if (!lost.stop_requested()) note({boottime(), What::untold, lock_.name(), number(lock_.token())});
}

}  // namespace dlock::test
