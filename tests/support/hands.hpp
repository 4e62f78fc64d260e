// How a test asks the store for one name on behalf of several who want it.
#pragma once

#include "store/waiter_table.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

namespace dlock::test {

inline Deadline soon() { return later(BootClock::now(), far_longer()); }

// A row that is locked just now, and what else passes by itself, is asked for again, as the engine does.
template <class Work>
auto patiently(Work work) -> decltype(work()) {
  for (const auto until = soon();;) {
    try {
      return work();
    } catch (const Failure& failure) {
      const bool passes = failure.cause() == Cause::locked || failure.cause() == Cause::deadlock ||
                          failure.cause() == Cause::serialization;
      if (!passes || until.passed()) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

// 32 hexadecimal digits.
inline std::string identity(int number) { return fmt::format("{:032x}", number); }

// Somebody who waits for a name and takes it, with an owner and an actor of its own, both made from a number.
// Threads: one at a time; the table is shared.
class Hand {
 public:
  Hand(store::LockTable& table, int number, std::string name = "job")
      : table_(table), name_(name), owner_(identity(number)), actor_(identity(10'000 + number)) {}

  const std::string& owner() const { return owner_; }
  const std::string& actor() const { return actor_; }
  // Another owner of the same thread: for another name.
  Hand& as(std::string owner) {
    owner_ = std::move(owner);
    return *this;
  }
  Hand& acting(std::string actor) {
    actor_ = std::move(actor);
    return *this;
  }
  // As one of its node's entries.
  Hand& entering() {
    mode_ = Mode::node;
    return *this;
  }

  // As one of those who read.
  Hand& reading() {
    mode_ = Mode::shared;
    return *this;
  }
  // As one that wants so many permits of as many as there are.
  Hand& wanting(std::int64_t permits, std::int64_t limit) {
    mode_ = Mode::permits;
    permits_ = permits;
    limit_ = limit;
    return *this;
  }

  // As one that called so long ago.
  Hand& having_waited(Duration waited) {
    waited_ = waited;
    return *this;
  }

  std::int64_t draw_ticket(Duration ttl = std::chrono::hours{1}) {
    return ticket_ = patiently(
               [&] { return table_.waiting().draw_ticket(wait(store::Wait::Discipline::fifo, ttl), soon()); });
  }
  void add(Duration ttl = std::chrono::hours{1}) {
    patiently([&] {
      table_.waiting().add(wait(store::Wait::Discipline::barging, ttl), soon());
      return true;
    });
  }
  // With the ticket that was drawn, if there is one.
  bool acquire(Duration at_least = {}) { return acquire_with(ticket_, at_least); }
  bool barge() { return acquire_with(0, {}); }
  bool release() {
    const store::LeaseKey claim{name_.text(), owner_, token_, {}, mode_};
    return patiently([&]() -> bool { return table_.release(claim, soon()); });
  }
  bool lives(Duration ttl = std::chrono::hours{1}) {
    const store::WaiterKey key{name_.text(), owner_};
    return patiently([&]() -> bool { return table_.waiting().renew_waiters({&key, 1}, ttl, soon()).at(0); });
  }
  void remove() {
    patiently([&] {
      table_.waiting().remove(name_.text(), owner_, soon());
      return true;
    });
  }
  store::Availability look() { return table_.look(name_.text(), ticket_, soon()); }
  // In the mode in which it wants the name.
  store::Availability look_in_mode() { return table_.look_for(ask(ticket_, {}), soon()); }
  std::optional<Token> hand_over(Hand& to, Duration at_least = {}, std::int64_t tokens = 1) {
    const store::LeaseKey from{name_.text(), owner_, token_};
    if (!patiently([&] { return table_.waiting().hand_over(from, to.ask(to.ticket_, at_least), tokens, soon()); }))
      return std::nullopt;
    to.token_ = Token{number(token_) + tokens};
    return to.token_;
  }
  // From its own wait on, as far as each step has one that comes next; then the others.
  std::vector<store::WaitEdge> chain() {
    auto edges = table_.waiting().chain(actor_, owner_, soon());
    std::string next = actor_;
    for (auto at = edges.begin(); at != edges.end(); ++at) {
      const auto found = std::find_if(at, edges.end(), [&](const store::WaitEdge& edge) {
        return edge.waiter_actor.size() == 32 && edge.waiter_actor.substr(16) == next.substr(16);
      });
      if (found == edges.end()) break;
      std::iter_swap(at, found);
      next = at->holder_actor;
      if (next.size() != 32) break;
    }
    return edges;
  }

  std::int64_t ticket() const { return ticket_; }
  Token token() const { return token_; }

 private:
  store::Wait wait(store::Wait::Discipline discipline, Duration ttl) const {
    return {name_.text(), owner_, "node", "label", actor_, discipline, ttl, {}, mode_, waited_};
  }
  store::AcquireRequest ask(std::int64_t ticket, Duration at_least) const {
    store::AcquireRequest ask{name_, owner_, "node", "label", actor_, std::chrono::hours{1}, at_least, "meta"};
    ask.ticket = ticket;
    ask.mode = mode_;
    ask.permits = permits_;
    ask.limit = limit_;
    return ask;
  }
  bool acquire_with(std::int64_t ticket, Duration at_least) {
    const auto wanted = ask(ticket, at_least);
    const auto granted = patiently([&] {
      auto answer = table_.acquire(wanted, soon());
      if (answer.row_locked) throw Failure(Cause::locked, "the row is locked");
      return answer;
    });
    if (granted.token) token_ = *granted.token;
    return granted.token.has_value();
  }

  store::LockTable& table_;
  const Name name_;
  std::string owner_, actor_;
  std::int64_t ticket_ = 0, permits_ = 1, limit_ = 0;
  Token token_{};
  Duration waited_{};
  Mode mode_ = Mode::exclusive;
};

}  // namespace dlock::test
