// What another process does in the tests: it uses the public face of the library and nothing else.
//
//   worker count URL NAME FOLDER THREADS ROUNDS LEASE_MS DIES_AT
//                                                          raise the number in FOLDER/counter, ROUNDS times a thread;
//                                                          killed inside, at entry DIES_AT of this process (0: never)
//   worker hold URL NAME LEASE_MS AT_LEAST_MS [DELAY_MS]   take a lock, say its token, and obey lines on stdin:
//                                                          "check" says valid or lost; "release" says what came of it
//   worker watch URL NAME LEASE_MS                         as hold, and says "lost TIME REASON TIMES" when told of the
//                                                          loss: CLOCK_BOOTTIME in microseconds, and how often by then
//   worker enter URL NAME NODE LEASE_MS                    likewise, as a process of that node
//   worker lead URL NAME LEASE_MS LEDGER                   campaign under its process id as label, and say so; add a
//                                                          line "PID TOKEN BEFORE AFTER" to the file when it leads at a
//                                                          moment between two times of CLOCK_BOOTTIME in microseconds;
//                                                          "check" says leads or follows, "end" ends it
//   worker want URL NAME                                   wait for a lock as the job in DLOCK_JOB, and say how it
//                                                          ended
//   worker exit URL NAME THREADS                           wait with so many threads on a global engine, for
//                                                          "NAME 0" and so on, say so, and leave by exit() at the
//                                                          next line on stdin
#include "support/slowness.hpp"

#include <dlock/dlock.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using dlock::test::slowness;

// What a busy machine cannot do in the usual time is not given up.
dlock::EngineOptions patient() {
  dlock::EngineOptions options;
  options.timeouts.connect *= slowness();
  options.timeouts.request *= slowness();
  options.timeouts.release *= 5 * slowness();
  return options;
}

// Raises an unguarded number and notes token and number in a journal, with nothing but the lock to keep others out.
// Each step is one call, so that a kill leaves no half of it. Who is too slow for the lease proves nothing, and ends
// with 4.
void raise_number(const dlock::Lock& lock, int counter, int journal, bool die) {
  long long value = 0;
  if (::pread(counter, &value, sizeof value, 0) < 0) std::_Exit(3);
  ++value;
  std::this_thread::yield();
  if (::pwrite(counter, &value, sizeof value, 0) != sizeof value) std::_Exit(3);
  if (!lock.valid()) std::_Exit(4);
  if (die) ::raise(SIGKILL);
  const auto line = std::to_string(dlock::number(lock.token())) + ' ' + std::to_string(value) + '\n';
  if (::write(journal, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::_Exit(3);
  if (!lock.valid()) std::_Exit(4);
}

int count(const std::string& url, const std::string& name, const std::string& folder, int threads, int rounds,
          dlock::Duration lease, int dies_at) {
  auto options = patient();
  options.lease = lease;
  dlock::Engine engine(url, options);
  const int counter = ::open((folder + "/counter").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int journal = ::open((folder + "/journal").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  std::atomic<int> entries{0};
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        auto lock = engine.lock(name);
        raise_number(lock, counter, journal, ++entries == dies_at);
      }
    });
  return 0;
}

int hold(const std::string& url, const std::string& name, dlock::Duration lease, dlock::Duration at_least,
         const dlock::EngineOptions& engine_options = patient(), dlock::Duration delay = {}) {
  dlock::Engine engine(url, engine_options);
  dlock::LockOptions options;
  options.lease = lease;
  options.at_least = at_least;
  options.delay_after_loss = delay;
  auto lock = engine.lock(name, options);
  std::cout << dlock::number(lock.token()) << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "check") std::cout << (lock.valid() ? "valid" : "lost") << std::endl;
    if (line == "release") std::cout << dlock::to_string(lock.release()) << std::endl;
  }
  return 0;
}

int watch(const std::string& url, const std::string& name, dlock::Duration lease) {
  auto options = patient();
  options.timeouts.request = 2s * slowness();
  dlock::Engine engine(url, options);
  dlock::LockOptions held;
  held.lease = lease;
  auto lock = engine.lock(name, held);
  std::atomic<int> times{0};
  const std::stop_callback told(lock.lost(), [&] {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const auto loss = lock.loss();
    const std::string line = "lost " + std::to_string(now.tv_sec * 1000000 + now.tv_nsec / 1000) + ' ' +
                             std::string(loss ? dlock::to_string(*loss) : "without a reason") + ' ' +
                             std::to_string(++times) + '\n';
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(3);
  });
  std::cout << dlock::number(lock.token()) << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "check") std::cout << (lock.valid() ? "valid" : "lost") << std::endl;
    if (line == "times") std::cout << times << std::endl;
    if (line == "end") std::_Exit(0);  // as a crash: a network that swallows everything would be waited for
  }
  return 0;
}

long long boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

// Each line is one call, so that a kill leaves no half of it.
int lead(const std::string& url, const std::string& name, dlock::Duration lease, const std::string& path) {
  auto options = patient();
  options.label = std::to_string(::getpid());
  dlock::Engine engine(url, options);
  dlock::ElectionOptions campaign;
  campaign.lock.lease = lease;
  const int ledger = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  dlock::Election election(engine, name, campaign);
  std::cout << "campaigns" << std::endl;
  std::jthread writer([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(2ms)) {
      const auto term = election.term();
      const auto before = boot_time();
      if (!term || !term->valid()) continue;
      const auto line = options.label + ' ' + std::to_string(dlock::number(term->token())) + ' ' +
                        std::to_string(before) + ' ' + std::to_string(boot_time()) + '\n';
      if (::write(ledger, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::_Exit(3);
    }
  });
  for (std::string line; std::getline(std::cin, line) && line != "end";)
    if (line == "check") std::cout << (election.is_leader() ? "leads" : "follows") << std::endl;
  return 0;
}

int want(const std::string& url, const std::string& name) {
  const dlock::Job::Scope here(dlock::Job::from_environment());
  dlock::Engine engine(url, patient());
  std::string told = "busy";
  try {
    if (engine.try_lock_for(name, 4min)) told = "granted";
  } catch (const dlock::Error& error) { told = error.what(); }
  std::cout << told << std::endl;
  return 0;
}

// Threads that wait, each for a name of its own, in a queue, and that nobody ends.
int exit_while_waiting(const std::string& url, const std::string& name, int threads) {
  static dlock::Engine global(url, patient());
  for (int i = 0; i < threads; ++i)
    std::thread([name = name + ' ' + std::to_string(i)] {
      try {
        global.lock(name, {.fairness = dlock::Fairness::fifo}).detach();
      } catch (const dlock::Error& error) {
        if (error.fault() != dlock::Fault::misuse) std::_Exit(5);
      }
      for (;;) ::pause();
    }).detach();
  while (global.waiters(name + " *").size() < static_cast<std::size_t>(threads)) std::this_thread::sleep_for(5ms);
  std::cout << "waiting" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  std::exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto ms = [&](std::size_t i) { return std::chrono::milliseconds{std::stoll(arguments.at(i))}; };
  try {
    if (arguments.at(0) == "count")
      return count(arguments.at(1), arguments.at(2), arguments.at(3), std::stoi(arguments.at(4)),
                   std::stoi(arguments.at(5)), ms(6), std::stoi(arguments.at(7)));
    if (arguments.at(0) == "hold")
      return hold(arguments.at(1), arguments.at(2), ms(3), ms(4), patient(), arguments.size() > 5 ? ms(5) : 0ms);
    if (arguments.at(0) == "want") return want(arguments.at(1), arguments.at(2));
    if (arguments.at(0) == "watch") return watch(arguments.at(1), arguments.at(2), ms(3));
    if (arguments.at(0) == "lead") return lead(arguments.at(1), arguments.at(2), ms(3), arguments.at(4));
    if (arguments.at(0) == "exit")
      return exit_while_waiting(arguments.at(1), arguments.at(2), std::stoi(arguments.at(3)));
    if (arguments.at(0) == "enter") {
      auto options = patient();
      options.node = arguments.at(3);
      options.reentrance = dlock::Reentrance::node;
      return hold(arguments.at(1), arguments.at(2), ms(4), {}, options);
    }
    std::cerr << "unknown: " << arguments.at(0) << '\n';
  } catch (const std::exception& error) { std::cerr << "worker: " << error.what() << '\n'; }
  return 2;
}
