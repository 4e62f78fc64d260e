// What threads losses have: one, and as many more as there are callbacks that block.
#include "engine/lease/loss_signals.hpp"

#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

using namespace dlock::test;
using namespace std::chrono_literals;
using dlock::BootClock;
using dlock::Instant;
using dlock::engine::Lease;
using dlock::engine::LeaseTerms;
using dlock::engine::LossSignals;

namespace {

using Callback = std::stop_callback<std::function<void()>>;

std::shared_ptr<Lease> grant() {
  return std::make_shared<Lease>(dlock::Name("n"), "owner", dlock::Token{2}, LeaseTerms{}, BootClock::now());
}

// Looked after as the trust timer does it.
class LookedAfter {
 public:
  LookedAfter() {
    losses.on_delay([this] { called_ = true; });
    thread_ = std::jthread([this](const std::stop_token& stop) {
      auto next = Instant::max();
      while (!stop.stop_requested()) {
        if (called_.exchange(false) || BootClock::now() >= next) next = losses.look_after();
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  LossSignals losses{};

 private:
  std::atomic<bool> called_{false};
  std::jthread thread_;
};

}  // namespace

TEST_CASE("losses that nobody listens for need no thread") {
  LossSignals losses;
  const auto threads = count_threads();
  std::vector<std::shared_ptr<Lease>> all;
  for (int i = 0; i < 1000; ++i) all.push_back(grant());
  for (const auto& held : all) losses.fire(held);
  CHECK(count_threads() == threads);
  for (const auto& held : all) CHECK(held->lost().stop_requested());
}

TEST_CASE("callbacks that return at once share a few threads, however many there are") {
  constexpr int count = 2000;
  LookedAfter after;
  const auto threads = count_threads();
  std::atomic<int> told{0};
  std::vector<std::shared_ptr<Lease>> all;
  std::vector<std::unique_ptr<Callback>> callbacks;
  for (int i = 0; i < count; ++i) {
    all.push_back(grant());
    callbacks.push_back(std::make_unique<Callback>(all.back()->lost(), [&] { ++told; }));
  }
  for (const auto& held : all) after.losses.fire(held);
  CHECK(eventually([&] { return told == count; }));
  // One or two; more where the machine lets a thread stand in the middle of a callback.
  CHECK(count_threads() <= threads + count / 20);
}

TEST_CASE("each callback that blocks has a thread, and the next loss another one") {
  constexpr int count = 20;
  std::atomic<bool> open{false};
  std::atomic<int> entered{0}, told{0};
  LookedAfter after;
  std::vector<std::shared_ptr<Lease>> all;
  std::vector<std::unique_ptr<Callback>> callbacks;
  for (int i = 0; i < count; ++i) {
    all.push_back(grant());
    callbacks.push_back(std::make_unique<Callback>(all.back()->lost(), [&] {
      ++entered;
      eventually([&] { return open.load(); }, 60s);
    }));
  }
  for (const auto& held : all) after.losses.fire(held);
  CHECK(eventually([&] { return entered == count; }));
  const auto last = grant();
  const Callback callback(last->lost(), [&] { ++told; });
  after.losses.fire(last);
  CHECK(eventually([&] { return told == 1; }));
  open = true;
}

TEST_CASE("the end waits for what was told, and for what blocks not longer than it is said to") {
  std::atomic<bool> open{false};
  std::atomic<int> entered{0}, told{0};
  const auto blocking = grant(), last = grant();
  const Callback first(blocking->lost(), [&] {
    ++entered;
    eventually([&] { return open.load(); }, 60s);
  });
  const Callback second(last->lost(), [&] { ++told; });
  {
    LossSignals losses;
    losses.fire(blocking);
    REQUIRE(eventually([&] { return entered == 1; }));
    losses.fire(last);  // nobody looks after it
    const Stopwatch time;
    losses.close(dlock::later(BootClock::now(), 300ms));
    CHECK(time.elapsed() >= 300ms);
    CHECK(time.elapsed() < 300ms + 2s * slowness());
    CHECK(told == 1);
  }
  open = true;
}
