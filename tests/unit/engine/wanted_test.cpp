// What a renewal says of those who wait reaches the holder, on a thread that may block.
#include "engine/lease_renewer_bench.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;
using namespace dlock::test;

namespace {

dlock::engine::LeaseTerms often() {
  dlock::engine::LeaseTerms terms;
  terms.lease = 4s * slowness();
  terms.renew_every = 10ms;
  return terms;
}

}  // namespace

TEST_CASE("a lease is wanted from the renewal that says so to the one that does not, and asked once") {
  RenewerBench bench;
  const auto held = bench.hold("job", often());
  std::atomic<int> asked{0};
  const std::stop_callback heard(held->asked(), [&] { ++asked; });
  for (int i = 0; i < 3; ++i) {
    CHECK(reached([&] { return !held->wanted_since(); }));
    bench.table->wanted = true;
    CHECK(reached([&] { return held->wanted_since().has_value(); }));
    CHECK(reached([&] { return asked > 0; }));
    bench.table->wanted = false;
  }
  CHECK(asked == 1);
  bench.let_go(held);
}

TEST_CASE("since when, and in which mode, is what the last renewal said") {
  RenewerBench bench;
  const auto held = bench.hold("job", often());
  const auto told = [&](dlock::Duration waited, dlock::Mode mode) {
    const auto before = dlock::BootClock::now();
    bench.table->waited = waited;
    bench.table->wanted_mode = mode;
    bench.table->wanted = true;
    // Of an answer that came after `before`.
    return reached([&] {
      const auto wanted = held->wanted_since();
      return wanted && wanted->mode == mode && wanted->since >= before - waited &&
             wanted->since <= dlock::BootClock::now() - waited;
    });
  };
  CHECK(told(1h, dlock::Mode::shared));
  CHECK(told(2h, dlock::Mode::exclusive));
  CHECK(told(1s, dlock::Mode::permits));  // the one that had waited for longest has given up
  bench.let_go(held);
}

TEST_CASE("of several who wait it is the longest wait and the widest mode that count") {
  using dlock::Mode;
  using dlock::engine::joined;
  using dlock::engine::WantedSince;
  const auto at = [](dlock::Duration time) { return dlock::Instant{time}; };
  const std::optional<WantedSince> nobody, reader = WantedSince{at(1h), Mode::shared},
                                           permits = WantedSince{at(2h), Mode::permits},
                                           writer = WantedSince{at(3h), Mode::exclusive};
  CHECK(joined(nobody, nobody) == nobody);
  CHECK(joined(reader, nobody) == reader);
  CHECK(joined(nobody, writer) == writer);
  CHECK(joined(reader, writer) == WantedSince{at(1h), Mode::exclusive});
  CHECK(joined(writer, reader) == WantedSince{at(1h), Mode::exclusive});
  CHECK(joined(reader, permits) == WantedSince{at(1h), Mode::permits});
  CHECK(joined(permits, writer) == WantedSince{at(2h), Mode::exclusive});
}

TEST_CASE("who asks for asked() after the renewal that said so finds it set") {
  RenewerBench bench;
  const auto held = bench.hold("job", often());
  bench.table->wanted = true;
  CHECK(reached([&] { return held->wanted_since().has_value(); }));
  CHECK(reached([&] { return held->asked().stop_requested(); }));
  bench.let_go(held);
}

TEST_CASE("a callback of asked() that blocks delays no renewal, and no loss") {
  RenewerBench bench;
  const auto held = bench.hold("job", often());
  const auto lost = held->lost();
  std::atomic<bool> blocked{false}, over{false};
  const std::stop_callback heard(held->asked(), [&] {
    blocked = true;
    while (!over) std::this_thread::sleep_for(1ms);
  });
  bench.table->wanted = true;
  CHECK(reached([&] { return blocked.load(); }));
  const auto rounds = bench.rounds_of("job").size();
  CHECK(reached([&] { return bench.rounds_of("job").size() > rounds + 2; }));
  CHECK(held->lose(dlock::Loss::refused));
  bench.events->emit_loss(held, "it is said to be");
  CHECK(reached([&] { return lost.stop_requested(); }));
  CHECK_FALSE(over);
  over = true;
  bench.let_go(held);
}
