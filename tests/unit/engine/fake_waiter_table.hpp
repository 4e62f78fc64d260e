// A waiting room that nobody enters, for the engine's unit tests: its table is in memory. A test may say what happens
// in it.
#pragma once

#include "store/waiter_table.hpp"

#include <functional>

namespace dlock::test {

class FakeWaiterTable final : public store::WaiterTable {
 public:
  void want(std::string_view name, Duration, Deadline) override {
    if (on_want) on_want(name);
  }
  void unwant(std::string_view, Deadline) override {}
  std::int64_t draw_ticket(const store::Wait&, Deadline) override { throw Failure(Cause::rejected, "no tickets here"); }
  void add(const store::Wait&, Deadline) override {}
  std::vector<bool> renew_waiters(std::span<const store::WaiterKey> keys, Duration, Deadline) override {
    return std::vector<bool>(keys.size(), true);
  }
  void remove(std::string_view, std::string_view, Deadline) override {}
  std::size_t forget_waiters(std::size_t, Deadline) override { return 0; }
  bool hand_over(const store::LeaseKey& from, const store::AcquireRequest& to, std::int64_t tokens, Deadline) override {
    return on_hand_over && on_hand_over(from, to, tokens);
  }
  void rename(const store::LeaseKey&, std::string_view, Deadline) override {}
  std::vector<store::WaitEdge> chain(std::string_view, std::string_view, Deadline) override { return edges; }
  std::vector<Waiter> waiters(std::string_view, Deadline) override { return {}; }
  std::vector<Sharer> sharers(std::string_view, Deadline) override { return {}; }

  // Set before use:
  std::function<bool(const store::LeaseKey&, const store::AcquireRequest&, std::int64_t tokens)> on_hand_over{};
  std::function<void(std::string_view name)> on_want{};
  std::vector<store::WaitEdge> edges{};  // whoever asks for a chain is answered this one
};

}  // namespace dlock::test
