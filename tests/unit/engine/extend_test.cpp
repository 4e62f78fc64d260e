// Tests what a lease is believed to be while another length is asked for, whatever becomes of the request.
#include "engine/core.hpp"
#include "engine/lease_renewer_bench.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

#include <future>
#include <optional>
#include <vector>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Cause;
using dlock::Duration;
using dlock::Fault;
using dlock::Instant;
using dlock::later;
using dlock::engine::Lease;
using dlock::engine::LeaseTerms;

namespace {

LeaseTerms lease_of(Duration lease, Duration margin = 1ms) {
  LeaseTerms terms;
  terms.lease = lease;
  terms.margin = margin;
  return terms;
}

Lease granted(Duration lease, Instant sent) {
  return Lease(dlock::Name("n"), "an owner", dlock::Token{1}, lease_of(lease), sent);
}

struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  dlock::Core core;

  explicit Bench(dlock::EngineOptions options = {}) : core(table, std::move(options)) {}

  std::shared_ptr<Lease> take(dlock::LockOptions options) {
    options.reentrance = dlock::Reentrance::none;
    auto held = core.acquire(dlock::Name("n"), options, {later(BootClock::now(), 10s), {}, false});
    REQUIRE(held);
    return held;
  }
};

Duration left(const std::shared_ptr<Lease>& held) { return held->remaining(BootClock::now()); }

// The fault that an extension ends with; none: it was confirmed.
std::optional<Fault> fault_of(Bench& bench, const std::shared_ptr<Lease>& held, Duration lease) {
  try {
    bench.core.extend(held, lease);
  } catch (const dlock::Error& error) { return error.fault(); }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a shorter lease is believed before it is asked for, and nothing but a longer one raises it again") {
  const auto sent = BootClock::now();
  auto held = granted(1h, sent);
  held.ask_for(lease_of(2s));
  CHECK(held.trusted_until() <= later(BootClock::now(), 2s));
  CHECK(held.terms().lease == 2s);
  CHECK(held.longest() == 1h);
  // A renewal that left before, with the longer one, is answered now.
  CHECK(held.confirmed(later(sent, 1us), 1h));
  CHECK(held.trusted_until() <= later(BootClock::now(), 2s));
  CHECK(held.extended(BootClock::now(), lease_of(1h)));
  CHECK(held.trusted_until() > later(sent, 1h) - 2ms);
}

TEST_CASE("an extension to at least so much makes nothing shorter that is longer by then") {
  const auto sent = BootClock::now();
  auto held = granted(1h, sent);
  const auto trusted = held.trusted_until();
  CHECK(held.ask_for(lease_of(2s), true).lease == 1h);
  CHECK(held.trusted_until() == trusted);
  CHECK(held.terms().lease == 1h);
  CHECK(held.extended(later(sent, 1us), lease_of(2s), true));
  CHECK(held.terms().lease == 1h);
  CHECK(held.trusted_until() == trusted);
  CHECK(held.ask_for(lease_of(2h), true).lease == 2h);
  CHECK(held.terms().lease == 1h);  // until it is confirmed
  CHECK(held.extended(BootClock::now(), lease_of(2h), true));
  CHECK(held.terms().lease == 2h);
}

TEST_CASE("a renewal counts for the length that it asked for, also where a longer one was confirmed since") {
  const auto sent = BootClock::now();
  auto held = granted(5s, sent);
  const auto asked = later(sent, 1ms), renewed = later(sent, 500ms);
  held.ask_for(lease_of(1h));
  CHECK(held.extended(asked, lease_of(1h)));
  CHECK(held.confirmed(renewed, 5s));  // it was sent after the extension, and before that was confirmed
  CHECK(held.trusted_until() == later(asked, 1h - 1ms));
}

TEST_CASE("an answer that comes late makes nobody trust for less") {
  const auto sent = BootClock::now();
  auto held = granted(1h, sent);
  CHECK(held.confirmed(later(sent, 2s), 1h));
  const auto trusted = held.trusted_until();
  CHECK(held.confirmed(later(sent, 1s), 1h));
  CHECK(held.extended(later(sent, 1s), lease_of(1h)));
  CHECK(held.trusted_until() == trusted);
}

TEST_CASE("an answer that comes when trust has run out brings nothing back, whoever notices first") {
  for (const bool extension : {true, false}) {
    INFO("extension: " << extension);
    const auto sent = BootClock::now();
    auto held = granted(1h, sent);
    BootClock::ahead += std::chrono::nanoseconds(2h).count();
    const auto now = BootClock::now();  // an answer to what was sent just now: it would be good for another hour
    CHECK_FALSE((extension ? held.extended(now, lease_of(1h)) : held.confirmed(now, 1h)));
    CHECK_FALSE(held.valid(now));
    CHECK(held.trusted_until() < later(sent, 1h));
  }
}

TEST_CASE("an extension to less whose answer is lost leaves no more trust than that, and the lease ends as lost") {
  for (const bool carried_out : {true, false}) {
    INFO("carried out: " << carried_out);
    Bench bench({.timeouts = {.request = 100ms}});
    const auto held = bench.take({.lease = 1min, .renew = false});
    bench.table->add_mishap(Cause::disconnected, true, carried_out);
    bench.table->away_after_mishaps = true;
    CHECK(fault_of(bench, held, 400ms) == Fault::in_doubt);
    CHECK(left(held) <= 400ms);
    CHECK(held->terms().lease == 400ms);
    bench.table->away = false;
    CHECK(reached([&] { return held->lost().stop_requested(); }));
    CHECK(held->loss() == dlock::Loss::unconfirmed);
  }
}

TEST_CASE("an extension to less that never left the process leaves no more trust either") {
  const Duration brief = 300ms * slowness();
  Bench bench({.timeouts = {.request = 50ms}});
  const auto held = bench.take({.lease = 1min, .renew = false});
  bench.table->away = true;
  CHECK(fault_of(bench, held, brief) == Fault::unavailable);
  CHECK(left(held) <= brief);
  bench.table->away = false;
  CHECK_FALSE(fault_of(bench, held, 1min));
  CHECK(left(held) > 50s);
  CHECK(bench.core.release(held, 1s) == dlock::Released::freed);
}

TEST_CASE("an extension to more whose answer is lost leaves trust as it was, and is renewed at the old length") {
  const Duration lease = 3s * slowness();
  Bench bench({.timeouts = {.request = 100ms}});
  const auto held = bench.take({.lease = lease});
  const auto trusted = held->trusted_until();
  bench.table->add_mishap(Cause::disconnected, true, true);
  bench.table->away_after_mishaps = true;
  CHECK(fault_of(bench, held, 1h) == Fault::in_doubt);
  CHECK(held->trusted_until() == trusted);
  CHECK(held->terms().lease == lease);
  bench.table->away = false;
  CHECK(reached([&] { return held->trusted_until() > trusted; }));
  CHECK(left(held) <= lease);
  CHECK(bench.core.release(held, 1s) == dlock::Released::freed);
}

TEST_CASE("while an extension to less gets no answer the lease is renewed at the new length") {
  const Duration brief = 2s * slowness();
  Bench bench;
  const auto held = bench.take({.lease = 1min});
  std::promise<void> renewed;
  std::atomic<bool> told{false};
  bench.table->on_renew = [&](std::span<const dlock::store::LeaseKey> keys, dlock::Deadline) {
    if (keys.front().lease == brief && !told.exchange(true)) renewed.set_value();
  };
  bench.table->before_extending = [&](Duration) {
    CHECK(renewed.get_future().wait_for(20s) == std::future_status::ready);
  };
  CHECK_FALSE(fault_of(bench, held, brief));
  CHECK(held->valid(BootClock::now()));
  CHECK(left(held) <= brief);
  CHECK(bench.core.release(held, 1s) == dlock::Released::freed);
}

TEST_CASE("a lease too short to be renewed is renewed once it is extended, and no more once it is too short again") {
  const Duration longer = 900ms * slowness();
  Bench bench;
  const auto held = bench.take({.lease = 290ms});
  CHECK_FALSE(held->renewable());
  CHECK_FALSE(fault_of(bench, held, longer));
  CHECK(held->renewable());
  const auto trusted = held->trusted_until();
  CHECK(reached([&] { return held->trusted_until() > later(trusted, longer); }));
  CHECK(held->valid(BootClock::now()));
  CHECK_FALSE(fault_of(bench, held, 200ms));
  CHECK_FALSE(held->renewable());
  const int before = bench.table->renewals;
  CHECK(reached([&] { return held->lost().stop_requested(); }));
  CHECK(held->loss() == dlock::Loss::unconfirmed);
  CHECK(bench.table->renewals == before);
}

TEST_CASE("an extension that the pace of renewal does not fit is refused, and changes nothing") {
  Bench bench;
  const auto held = bench.take({.lease = 30s, .renew_every = 10s});
  const auto trusted = held->trusted_until();
  for (const Duration lease : {Duration{3s}, Duration{10s}}) CHECK(fault_of(bench, held, lease) == Fault::misuse);
  CHECK(bench.table->extensions == 0);
  CHECK(held->trusted_until() == trusted);
  CHECK(held->terms().lease == 30s);
  CHECK_FALSE(fault_of(bench, held, 11s));
  CHECK(bench.core.release(held, 1s) == dlock::Released::freed);
}

TEST_CASE("an extension that the chosen margin does not fit is refused, and one that it fits has it") {
  Bench bench({.margin = 2s});
  const auto held = bench.take({.lease = 30s});
  CHECK(fault_of(bench, held, 2s) == Fault::misuse);
  CHECK(held->terms().lease == 30s);
  CHECK_FALSE(fault_of(bench, held, 5s));
  CHECK(held->terms().margin == 2s);
  CHECK(left(held) <= 3s);
  CHECK(bench.core.release(held, 1s) == dlock::Released::freed);
}

TEST_CASE("the margin of an extended lease is that of its new length") {
  Bench bench;
  const auto held = bench.take({.lease = 1s});
  CHECK(held->terms().margin == 50ms);
  CHECK_FALSE(fault_of(bench, held, 4s));
  CHECK(held->terms().margin == 200ms);
  CHECK_FALSE(fault_of(bench, held, 1h));
  CHECK(held->terms().margin == 500ms);
  CHECK(bench.core.release(held, 1s) == dlock::Released::freed);
}

TEST_CASE("an extension that is asked for again ends within max_hold too") {
  Bench bench;
  const auto held = bench.take({.lease = 1s, .max_hold = 10s, .renew = false});
  bench.table->add_mishap(Cause::disconnected, true, true);
  bench.table->add_mishap(Cause::disconnected, true, true);
  std::vector<Duration> asked;
  bench.table->before_extending = [&](Duration lease) { asked.push_back(lease); };
  Duration room{};
  std::optional<Fault> fault;
  do {  // who was held up since it looked asks for more than is left, and nothing is sent
    room = std::chrono::floor<Duration>(held->ends() - BootClock::now()) - 1ms;
    fault = fault_of(bench, held, room);
  } while (fault == Fault::misuse && held->valid(BootClock::now()));
  CHECK_FALSE(fault);
  REQUIRE(asked.size() == 3);
  CHECK(asked.front() <= room);
  CHECK(asked.back() <= room + 1ms - 5ms);  // the shortest pause before a third attempt
  CHECK(held->trusted_until() < held->ends());
  CHECK(bench.core.release(held, 1s) == dlock::Released::freed);
}

TEST_CASE("what is sent in a fence does not last beyond max_hold") {
  const auto sent = BootClock::now();
  auto terms = lease_of(10s);
  terms.max_hold = 12s;
  const Lease held(dlock::Name("n"), "an owner", dlock::Token{1}, terms, sent);
  CHECK(held.key().lease == 10s);
  BootClock::ahead += std::chrono::nanoseconds(9s).count();
  const auto lease = held.key().lease;
  CHECK(lease <= 3s);
  CHECK(lease > 2s);
}

TEST_CASE("a grant whose first attempt got no answer is over within max_hold of that") {
  Bench bench;
  bench.table->add_mishap(Cause::disconnected, true, true);
  const auto asked = BootClock::now();
  const auto held = bench.take({.lease = 2s, .max_hold = 2s});
  const auto answered = BootClock::now();
  CHECK(held->ends() >= later(asked, 2s));
  CHECK(held->ends() <= later(answered, 2s));
  CHECK(bench.table->expires("n") <= later(answered, 2s));
  CHECK(bench.core.release(held, 1s) == dlock::Released::freed);
}
