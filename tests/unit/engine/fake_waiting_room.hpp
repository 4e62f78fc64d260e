// This file knows a waiting room that nobody enters, for the engine's unit tests: its table is in memory.
#pragma once

#include "store/waiting_room.hpp"

namespace dlock::test {

class FakeWaitingRoom final : public store::WaitingRoom {
 public:
  void want(std::string_view, Duration, Deadline) override {}
  void unwant(std::string_view, Deadline) override {}
  std::int64_t draw(const store::Wait&, Deadline) override { throw Failure(Cause::rejected, "no tickets here"); }
  void enroll(const store::Wait&, Deadline) override {}
  std::vector<bool> renew_waiters(std::span<const store::Place> places, Duration, Deadline) override {
    return std::vector<bool>(places.size(), true);
  }
  void discard(std::string_view, std::string_view, Deadline) override {}
  std::size_t forget_waiters(std::size_t, Deadline) override { return 0; }
  std::optional<Token> hand_over(const store::Claim&, const store::Ask&, Deadline) override { return std::nullopt; }
  std::vector<store::Link> chain(std::string_view, std::string_view, Deadline) override { return {}; }
  std::vector<Waiter> waiters(std::string_view, Deadline) override { return {}; }
};

}  // namespace dlock::test
