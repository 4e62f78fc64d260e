// What one replica of the service does: what an application of dlock looks like.
#include "ledger.hpp"
#include "roles.hpp"

#include <dlock/dlock.hpp>

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>

namespace demo {
namespace {

// One line for the conductor: what, tick, token.
void say(const char* what, int tick, dlock::Token token) {
  std::printf("%s %d %lld %lld\n", what, tick, static_cast<long long>(dlock::number(token)), now_us());
  std::fflush(stdout);
}

}  // namespace

int replica(const std::string& url, const std::string& name, long long begin_us) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no replica outlives its conductor, not even a frozen one
  dlock::EngineOptions options;
  options.node = name;
  options.label = name;
  options.lease = lease;
  dlock::Engine locks(url, options);
  Ledger ledger(url);

  const auto length = std::chrono::microseconds{tick_length}.count();
  for (int tick = 1; tick <= ticks; ++tick) {
    const auto due = begin_us + (tick - 1) * length;
    sleep_until_us(due);
    const auto until_next_tick = dlock::Duration{due + length - now_us()};
    if (until_next_tick <= dlock::Duration{}) continue;
    auto lock = locks.try_lock_for(job, until_next_tick);
    if (!lock) continue;
    const auto granted = now_us();
    say("granted", tick, lock->token());
    for (int due_tick = 1; due_tick <= tick; ++due_tick) {
      if (ledger.has(due_tick)) continue;
      say("running", due_tick, lock->token());
      // The renewer renews a third of the lease after the grant at the earliest, so that up to then this process is
      // surely outside of any write transaction: whoever wants to freeze it may do so now.
      if (now_us() - granted < std::chrono::microseconds{lease}.count() / 10) say("outside", due_tick, lock->token());
      sleep_until_us(now_us() + std::chrono::microseconds{work}.count());  // the work
      // Deliberately without a look at lock->valid(): the ledger alone must refuse a late write.
      say(ledger.write(due_tick, name, lock->token()) ? "ran" : "refused", due_tick, lock->token());
      if (!lock->valid()) break;
    }
    if (lock->loss()) say("lost", tick, lock->token());
  }
  return 0;
}

}  // namespace demo
