// The questions that can be put to the lock table inside a caller's own transaction.
#pragma once

#include "store/lock_table.hpp"

#include <dlock/duration.hpp>
#include <dlock/token.hpp>

#include <optional>
#include <string_view>

namespace dlock::store {

// How a row is taken inside a transaction. Without an owner it is held for as long as the transaction lasts; with one,
// a lease begins with its commit.
struct TakeRequest {
  std::string_view name;
  Token floor;
  std::optional<std::string_view> owner{};
  std::string_view node{}, label{}, actor{};
  Duration lease{}, at_least{};
  std::string_view metadata{};
  // For how long the client may be silent from then on, where a transaction can be bound to it.
  std::optional<Duration> idle_bound{};
};

// One transaction of a caller's. Threads: the caller's. Owns: nothing. Commits nothing, except by commit().
// Fails: members throw Failure; what a caller's own runner throws goes through. Failure{rejected} where the caller's
// connection leads to another database than the lock table is in: both are named, and nothing was done there.
class CallerTransaction {
 public:
  virtual ~CallerTransaction() = default;

  // Throws Failure{rejected} unless a transaction is open and can be used. `spoils`: one that is open and cannot be
  // used is spoiled then (see below).
  virtual void check(bool spoils) = 0;

  // Takes the row if it is free and nobody has it locked. Empty: not now.
  virtual std::optional<Token> take(const TakeRequest& ask) = 0;
  // Whether the last take() was in vain because another session has locked more than that row, and so saw nothing of
  // it.
  virtual bool table_locked() const = 0;
  // Whether the transaction sees a row of that name at all.
  virtual bool sees(std::string_view name) = 0;
  // See dialects::CallerConnection.
  virtual bool catch_up(std::string_view position, Duration wait) = 0;
  virtual bool counts_by_own_clock() = 0;
  virtual bool tries_once() = 0;
  virtual bool writes_alone() = 0;
  virtual Duration keep_alive() = 0;
  // Throws Failure{rejected} if it can be told at no cost to the transaction that its database is another one.
  virtual void confirm() = 0;

  // Writes the key's row, waiting at most about `wait` for it. False: the lease is not this key's any more.
  // `idle_bound`: see TakeRequest.
  virtual bool fence(const LeaseKey& key, Duration wait, std::optional<Duration> idle_bound) = 0;

  // See dialects::CallerConnection.
  virtual void doom() noexcept = 0;
  virtual void spoil() noexcept = 0;
  virtual void begin(Duration wait) = 0;
  virtual void commit() = 0;
  // Whether all that was done since the fence is undone: here, or by the database. False: somebody ended the
  // transaction, or nobody can tell.
  virtual bool undo() noexcept = 0;
  virtual bool roll_back() noexcept = 0;
};

}  // namespace dlock::store
