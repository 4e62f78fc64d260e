// This file knows the state of one grant in this process: whose, how long it can be trusted, and how it ended.
#pragma once

#include "store/lock_table.hpp"
#include "types/clock.hpp"
#include "types/name.hpp"

#include <dlock/lock.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace dlock::engine {

class Held;

// Grants in the order of some instant. Guarded by its owner's mutex.
using Schedule = std::multimap<Instant, std::shared_ptr<Held>>;

// Threads: any, except the two schedule entries, which belong to the keeper and to the trust timer.
class Held {
 public:
  struct Terms {
    Duration lease{}, margin{};
    std::optional<Duration> renew_every{};  // empty: a third of the lease
    bool renew = true;
  };

  Held(Name name, std::string owner, Token token, const Terms& terms, Instant sent);

  const std::string& name() const noexcept { return name_.text(); }
  const std::string& owner() const noexcept { return owner_; }
  Token token() const noexcept { return token_; }
  store::Claim claim() const noexcept { return {name_.text(), owner_, token_}; }
  bool renewable() const noexcept { return renewable_; }
  Terms terms() const;

  // Trust.
  Instant trusted_until() const noexcept { return Instant{BootClock::duration{until_.load(std::memory_order_acquire)}}; }
  bool valid(Instant now) const noexcept { return !ended() && now < trusted_until(); }
  Duration remaining(Instant now) const noexcept;
  // A request sent at `sent` was confirmed. Never moves the end of trust back, except with a new length.
  void confirmed(Instant sent);
  void confirmed(Instant sent, const Terms& terms);
  Instant next_renewal() const;

  // The end: lost, or let go by the holder. The first of them wins; true if it was this call.
  bool lose(Loss loss) noexcept;
  bool let_go() noexcept;
  bool ended() const noexcept { return end_.load(std::memory_order_acquire) != holding; }
  std::optional<Loss> loss() const noexcept;
  std::stop_token lost() const noexcept { return lost_.get_token(); }
  // Runs the callbacks registered on lost(): only on a thread that may block.
  void signal_loss() noexcept { lost_.request_stop(); }

  // Where the keeper and the timer have it in their schedules. Each guarded by its own mutex.
  std::optional<Schedule::iterator> in_keeper, in_timer;
  bool warned = false;  // keeper: trust_low was told since the last confirmation

 private:
  static constexpr int holding = -1, gone = -2;

  const Name name_;
  const std::string owner_;
  const Token token_;
  const bool renewable_;
  mutable std::mutex mutex_;
  Terms terms_;   // guarded by mutex_
  Instant sent_;  // guarded by mutex_
  std::atomic<BootClock::rep> until_;
  std::atomic<int> end_{holding};  // or a Loss
  std::stop_source lost_;
};

}  // namespace dlock::engine
