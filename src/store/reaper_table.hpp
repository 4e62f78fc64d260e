// Which questions the reaper can put, and whoever else removes rows that nobody uses.
#pragma once

#include "types/clock.hpp"
#include "types/removal_pace.hpp"

#include <dlock/duration.hpp>
#include <dlock/token.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::store {

// A lease that has expired without release, and who held it. Without a node it is the lock of several, each of whom is
// a DeadHolder: `sharers` of them that dead_holders does not list before it is settled.
struct Abandoned {
  std::string name, node, label;
  Token token{};
  Duration expired{};
  std::size_t sharers = 0;
};

// A row as it was seen idle.
struct Idle {
  std::string name;
  Token token{};
  Duration expires_at{};
};

// Some of the table: at most `limit` rows whose name begins with `prefix` and comes after `after`, in the names' order.
struct Some {
  std::string_view prefix{}, after{};
  std::size_t limit = 1000;
};

// Who settled an abandoned lease.
enum class Settled {
  by_asker,
  not_by_asker,
  unclear,     // somebody has, and what says who is gone, or the row is
  still_held,  // nobody: its holder goes on
};

// Who shared a name, and holds nothing any more. `abandoned`: without having let go.
struct DeadHolder {
  Abandoned lease{};
  std::string owner;
  bool abandoned = false;
  Duration expires_at{};
};

// Some rows of history: how many, and what the last one is called.
struct HistoryPiece {
  std::size_t rows = 0;
  std::int64_t last = 0;
};

// What has come to its end in the table, as questions and answers: whose turn it is to reap, which leases are
// abandoned, and what may be removed. All times are the database's.
// Threads: any. Every member waits at most until `deadline`, and throws Failure; a failure with may_have_run() leaves
// open what became of the question, and every question here may be put again.
class ReaperTable {
 public:
  virtual ~ReaperTable() = default;

  // Makes `reaper` the one that reaps for the length of `lease`, also if it is already. False: another one does, or the
  // last one ended less than `pause` ago and said that none is needed yet.
  virtual bool begin_reaping(std::string_view reaper, std::string_view label, Duration lease, Duration pause,
                             Deadline deadline) = 0;
  // Gives the turn back, and says for how long nobody needs another one (0: leaves that open).
  virtual void end_reaping(std::string_view reaper, Duration pause, Deadline deadline) = 0;

  // Leases that have expired without release. Locks nothing.
  virtual std::vector<Abandoned> abandoned(const Some& some, Deadline deadline) = 0;
  // Frees such a lease, with the next token, and signs that with `settler`. True: it was this call. False: its holder,
  // another settler or a new holder came first.
  virtual bool settle(std::string_view name, Token token, std::string_view settler, Deadline deadline) = 0;
  // What became of a settling that nobody answered.
  virtual Settled settled(std::string_view name, Token token, std::string_view settler, Deadline deadline) = 0;

  // Raises the floor to the largest token among rows idle for longer than `retention`; answers the floor after that.
  virtual Token raise_floor(Duration retention, Deadline deadline) = 0;
  // Raises the floor to `least`, if it is not there; answers the floor after that.
  virtual Token raise_floor_to(Token least, Deadline deadline) = 0;
  // Rows that nobody holds, that are idle for longer than `retention`, and whose token is not above `floor`: what is
  // abandoned is settled, and so reported, before it can go; and none that keeps something for the next holder. Locks
  // nothing.
  virtual std::vector<Idle> idle(const Some& some, Token floor, Duration retention, Deadline deadline) = 0;
  // A row that nobody holds and that is open, by its name. Empty: there is none. Locks nothing.
  virtual std::optional<Idle> idle_row(std::string_view name, Deadline deadline) = 0;
  // Removes those of these rows that are as they were seen, not locked by another transaction, and not marked by
  // somebody who waits; answers how many.
  virtual std::size_t remove_idle(std::span<const Idle> rows, Deadline deadline) = 0;
  virtual RemovalPace removal_pace() const noexcept = 0;

  // Of those who shared a name and hold nothing any more; in the order of names and owners, those of the name `after`
  // only behind `after_owner`. Locks nothing.
  virtual std::vector<DeadHolder> dead_holders(const Some& some, std::string_view after_owner, Deadline deadline) = 0;
  // At most `limit` of those who shared one name, never let go and hold nothing any more since its lock is not theirs;
  // in the order of owners, behind `after_owner`. Locks nothing.
  virtual std::vector<DeadHolder> dead_holders_of(std::string_view name, std::string_view after_owner,
                                                  std::size_t limit, Deadline deadline) = 0;
  // Removes one of them, if it is as it was seen. True: it was this call.
  virtual bool forget_holder(const DeadHolder& dead, Deadline deadline) = 0;
  // Whether it is there, dead or alive.
  virtual bool has_holder(const DeadHolder& dead, Deadline deadline) = 0;
  // Removes those of them who had let go.
  virtual void forget_holders(std::span<const DeadHolder> dead, Deadline deadline) = 0;
  // Of the rows of history that are more than `keep`, and come after the one called `after`, the first `batch` at most.
  virtual HistoryPiece count_history(std::size_t keep, std::int64_t after, std::size_t batch, Deadline deadline) = 0;
  // Removes at most `batch` of the rows of history that are more than `keep`, oldest first; answers how many.
  virtual std::size_t trim_history(std::size_t keep, std::size_t batch, Deadline deadline) = 0;
};

}  // namespace dlock::store
