// A waiting room that nobody enters, for the engine's unit tests: its table is in memory. A test may say what happens in
// it.
#pragma once

#include "store/waiting_room.hpp"

#include <functional>

namespace dlock::test {

class FakeWaitingRoom final : public store::WaitingRoom {
 public:
  void want(std::string_view name, Duration, Deadline) override {
    if (on_want) on_want(name);
  }
  void unwant(std::string_view, Deadline) override {}
  std::int64_t draw(const store::Wait&, Deadline) override { throw Failure(Cause::rejected, "no tickets here"); }
  void enroll(const store::Wait&, Deadline) override {}
  std::vector<bool> renew_waiters(std::span<const store::Place> places, Duration, Deadline) override {
    return std::vector<bool>(places.size(), true);
  }
  void discard(std::string_view, std::string_view, Deadline) override {}
  std::size_t forget_waiters(std::size_t, Deadline) override { return 0; }
  std::optional<Token> hand_over(const store::Claim& from, const store::Ask& to, Deadline) override {
    return on_hand_over ? on_hand_over(from, to) : std::nullopt;
  }
  void rename(const store::Claim&, std::string_view, Deadline) override {}
  std::vector<store::Link> chain(std::string_view, std::string_view, Deadline) override { return links; }
  std::vector<Waiter> waiters(std::string_view, Deadline) override { return {}; }

  // Set before use:
  std::function<std::optional<Token>(const store::Claim&, const store::Ask&)> on_hand_over{};
  std::function<void(std::string_view name)> on_want{};
  std::vector<store::Link> links{};  // whoever asks for a chain is answered this one
};

}  // namespace dlock::test
