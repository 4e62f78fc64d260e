// How migrators keep out of each other's way (one round is one version under the lock of the table), and are cut off.
#pragma once

#include "dialects/canceller.hpp"
#include "migrate/history.hpp"
#include "types/clock.hpp"
#include "types/digest.hpp"

#include <dlock/schema.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace dlock::migrate {

// As a setting of a session. PostgreSQL keeps milliseconds in 32 bits.
inline std::int64_t setting_of(Duration duration) {
  constexpr Duration longest = std::chrono::days{20};
  return std::int64_t{std::chrono::ceil<std::chrono::milliseconds>(std::min(duration, longest)).count()};
}

// Waits for so long at most, and for a quarter of it at least, unless it is to stop.
void pause(Duration longest, const std::stop_token& stop);

// The same before what the database has undone is done for the so-manieth time again.
void pause_before_retry(unsigned tries, const schema::Options& options);

// While it lives, what runs on the canceller's connection is cut off as soon as `asked` is; nothing is after that. What
// is missed is asked again, on a thread of its own: who stops must not wait.
// Threads: made and ended by the one that runs the statements.
class CancelGuard {
 public:
  // Without a canceller it does nothing.
  CancelGuard(dialects::Canceller* canceller, const std::stop_token& asked);
  CancelGuard(const CancelGuard&) = delete;
  CancelGuard& operator=(const CancelGuard&) = delete;
  ~CancelGuard();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

// Where the dialect has "begin", a round is one transaction, and leaving it without commit() rolls it back. Where it
// has "try_lock", that is the lock; else "begin" is. Never waits in the server for longer than a second.
class MigrationLock {
 public:
  // Without `options.lock`, nobody is kept out but by "begin". `canceller`: of what is sent meanwhile, which is cut off
  // as soon as `options.cancel` asks for it; null: nothing is. `tell` is for what goes wrong on the way out, where
  // nothing can be thrown.
  MigrationLock(History& history, const schema::Options& options, dialects::Canceller* canceller,
                std::function<void(const std::string&)> tell)
      : history_(history),
        options_(options),
        locks_(options.lock && history.has("try_lock")),
        tell_(std::move(tell)),
        key_(sha256(history.names().schema + '\0' + history.names().lock).substr(0, 40)),
        cancelled_(std::in_place, canceller, options.cancel) {}
  MigrationLock(const MigrationLock&) = delete;
  MigrationLock& operator=(const MigrationLock&) = delete;
  ~MigrationLock();

  // Once. False: another migrator has the lock.
  bool enter();
  // Who has it, if the database can tell.
  std::string holder();
  void commit();

 private:
  History& history_;
  const schema::Options& options_;
  const bool locks_;
  const std::function<void(const std::string&)> tell_;
  const std::string key_;
  std::optional<CancelGuard> cancelled_;  // ends before the round does
  bool begun_ = false, entered_ = false;
};

// A transaction that only reads, rolled back at its end.
class Reading {
 public:
  explicit Reading(History& history) : history_(history) { history_.begin_reading(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading();

 private:
  History& history_;
};

}  // namespace dlock::migrate
