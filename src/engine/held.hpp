// This file knows the state of one grant in this process: whose, how long it can be trusted, and how it ended.
#pragma once

#include "engine/renewal.hpp"
#include "store/lock_table.hpp"
#include "types/clock.hpp"
#include "types/name.hpp"

#include <dlock/lock.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace dlock::engine {

class Held;
struct Job;

// Grants in the order of some instant. Guarded by its owner's mutex.
using Schedule = std::multimap<Instant, std::shared_ptr<Held>>;

// Threads: any, except what belongs to the keeper and to the trust timer.
class Held {
 public:
  struct Terms {
    Duration lease{}, margin{};
    std::optional<Duration> renew_every{};  // empty: a third of the lease
    bool renew = true;
    Duration max_hold{};  // 0: none
  };

  using Actor = std::uint64_t;

  // `entry`: its identity in the row, in node mode.
  Held(Name name, std::string owner, Token token, const Terms& terms, Instant sent, std::string entry = {});

  const std::string& name() const noexcept { return name_.text(); }
  const std::string& owner() const noexcept { return owner_; }
  Token token() const noexcept { return token_; }
  const std::string& entry() const noexcept { return entry_; }
  store::Claim claim() const { return {name_.text(), owner_, token_, entry_, terms().lease}; }
  bool renewable() const noexcept { return renewable_; }
  Terms terms() const;

  // Trust.
  Instant trusted_until() const noexcept { return Instant{BootClock::duration{until_.load(std::memory_order_acquire)}}; }
  // Once somebody was told that trust is over, it stays over, whatever answer comes later.
  bool valid(Instant now) const noexcept;
  Duration remaining(Instant now) const noexcept;
  // A request sent at `sent` was confirmed. Never moves the end of trust back, except with a new length. False: too
  // late, the grant has ended.
  bool confirmed(Instant sent);
  bool confirmed(Instant sent, const Terms& terms);
  Window renewal(Share share) const;

  // When the lease must be over; Instant::max() without max_hold. Counted from the request that was granted.
  Instant ends() const noexcept { return ends_; }
  // After this no renewal may reach the database: the lease would be over too late.
  Instant last_renewal() const;
  // Nobody will renew it any more, for max_hold.
  void keep_no_longer() noexcept { final_.store(true, std::memory_order_release); }
  // What it is lost to when trust runs out.
  Loss running_out() const noexcept {
    return final_.load(std::memory_order_acquire) ? Loss::max_hold : Loss::unconfirmed;
  }

  // The end: lost, or let go by the holder; the first of them wins. True: it is lost, and this caller is to tell.
  bool lose(Loss loss) noexcept;
  bool let_go() noexcept;
  bool ended() const noexcept { return end_.load(std::memory_order_acquire) != holding; }
  std::optional<Loss> loss() const noexcept;
  std::stop_token lost() const noexcept { return lost_.get_token(); }
  // Runs the callbacks registered on lost(): only on a thread that may block.
  void signal_loss() noexcept { lost_.request_stop(); }

  // What the keeper notes about it. Guarded by the keeper's mutex, `warned` apart, which is its thread's own.
  struct Upkeep {
    std::optional<Schedule::iterator> by_earliest, by_latest;
    bool watched = false;     // to be renewed
    bool in_round = false;    // a round under way will schedule it again
    unsigned held_back = 0;   // by so many callers: not to be renewed now
    std::uint64_t round = 0;  // the last one that it was in
    bool warned = false;      // trust_low was told since the last confirmation
  } upkeep;
  std::optional<Schedule::iterator> in_timer;  // guarded by the trust timer's mutex

  // Guarded by the mutex of Entries: how many Locks share this grant, the thread that may enter it again, and whether it
  // was let go of without being released.
  int entries = 1;
  Actor actor = 0;
  bool detached = false;
  std::shared_ptr<const std::string> owner_mark;  // in node mode: see Owners; set before the grant is shared

  // Whose grant it is, for as long as it is held; only the thread that hands it out or lets it go looks at it.
  std::shared_ptr<Job> job;
  // How it came from hand to hand in this process without having been free. Set before the grant is shared.
  struct Passed {
    unsigned times = 0;
    Instant since{};  // the first of these grants
  } passed;

 private:
  static constexpr int holding = -1, gone = -2;

  Instant trust_from(Instant sent, const Terms& terms) const noexcept;

  const Name name_;
  const std::string owner_;
  const std::string entry_;
  const Token token_;
  const bool renewable_;
  const Instant ends_;
  mutable std::mutex mutex_;
  Terms terms_;   // guarded by mutex_
  Instant sent_;  // guarded by mutex_
  std::atomic<BootClock::rep> until_;
  std::atomic<bool> final_;
  mutable std::atomic<int> end_{holding};  // or a Loss
  std::atomic<bool> told_{false};          // somebody took it upon himself to tell of the loss
  std::stop_source lost_;
};

// Why trust ran out, for people.
inline const char* in_words(Loss running_out) {
  return running_out == Loss::max_hold ? "it was held as long as LockOptions::max_hold allows"
                                       : "trust ran out before a renewal was confirmed";
}

}  // namespace dlock::engine
