// A renewer and a trust timer on a table in memory, with the rounds that left and what was told.
#pragma once

#include "engine/fake_lock_table.hpp"
#include "engine/lease/lease_renewer.hpp"
#include "engine/lease/trust.hpp"
#include "engine/lease/trust_timer.hpp"
#include "engine/wait/wait_queues.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace dlock::test {

// Waits until `state` is reached.
template <class State>
bool reached(State state) {
  const auto give_up = std::chrono::steady_clock::now() + far_longer();
  while (!state()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

struct RenewerBench {
  struct Round {
    std::set<std::string, std::less<>> names{};
    Instant at{};
    Duration patience{};
  };
  struct EventLog {
    Event::Kind kind{};
    std::string name{}, text{};
    Duration took{};
  };

  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  std::mutex mutex;
  // Guarded by mutex:
  std::vector<Round> rounds;
  std::vector<EventLog> news;
  std::atomic<bool> stuck{false};  // a round that has left gets no answer as long as this is set
  std::atomic<int> under_way{0};

  std::shared_ptr<engine::EventQueue> events = std::make_shared<engine::EventQueue>([this](const Event& event) {
    const std::lock_guard guard(mutex);
    news.push_back({event.kind, std::string(event.name), std::string(event.text), event.took});
  });
  engine::TrustTimer timer{events};
  const std::shared_ptr<engine::WaitQueues> queues =
      std::make_shared<engine::WaitQueues>(std::chrono::milliseconds{500});
  engine::LeaseRenewer renewer;

  explicit RenewerBench(Duration request_timeout = std::chrono::seconds{5})
      : renewer(table, events, queues, request_timeout) {
    table->on_renew = [this](std::span<const store::LeaseKey> keys, Deadline deadline) {
      Round round;
      for (const auto& key : keys) round.names.emplace(key.name);
      round.at = BootClock::now();
      round.patience = std::chrono::floor<Duration>(deadline.at() - round.at);
      {
        const std::lock_guard guard(mutex);
        rounds.push_back(std::move(round));
      }
      ++under_way;
      while (stuck) std::this_thread::sleep_for(std::chrono::milliseconds{1});
      --under_way;
    };
  }
  ~RenewerBench() { stuck = false; }

  std::shared_ptr<engine::Lease> hold(const std::string& name, engine::LeaseTerms terms) {
    if (terms.margin == Duration{}) terms.margin = engine::margin_of(terms.lease, std::chrono::milliseconds{1}, {});
    const Name checked(name);
    const std::string owner = "owner of " + name;
    const auto sent = BootClock::now();
    const store::AcquireRequest ask{checked, owner, {}, {}, {}, terms.lease, {}, {}};
    const auto granted = table->acquire(ask, Deadline::max());
    auto held = std::make_shared<engine::Lease>(checked, owner, granted.token.value(), terms, sent);
    timer.watch(held);
    renewer.add(held);
    return held;
  }

  void let_go(const std::shared_ptr<engine::Lease>& held) {
    held->let_go();
    renewer.remove(held);
    timer.forget(held);
  }

  std::vector<Round> rounds_of(std::string_view name) {
    const std::lock_guard guard(mutex);
    std::vector<Round> found;
    std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(found),
                 [&](const Round& round) { return round.names.contains(name); });
    return found;
  }

  std::vector<EventLog> told(Event::Kind kind) {
    const std::lock_guard guard(mutex);
    std::vector<EventLog> found;
    std::copy_if(news.begin(), news.end(), std::back_inserter(found),
                 [&](const EventLog& item) { return item.kind == kind; });
    return found;
  }
};

}  // namespace dlock::test
