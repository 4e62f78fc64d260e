// Which questions can be put about those who wait for a lock.
#pragma once

#include "store/lock_table.hpp"
#include "types/clock.hpp"

#include <dlock/duration.hpp>
#include <dlock/token.hpp>
#include <dlock/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::store {

// One who waits.
struct Wait {
  enum class Discipline { barging, fifo, transaction };  // in what order it is served
  std::string_view name, owner, node, label, actor;
  Discipline discipline = Discipline::barging;
  Duration ttl;                        // of its row: for so long it is believed to live without a renewal
  std::optional<Duration> patience{};  // how long from now it means to wait; empty: for ever
  Mode wants = Mode::exclusive;        // what it asks for
  Duration waited{};                   // until now
};

// One step of who waits for whom: `waiter` waits for `name`, which `holder` holds. Both are owners.
struct WaitEdge {
  std::string name, waiter, waiter_label;
  std::int64_t ticket = 0;  // 0: none
  std::int64_t since = 0;   // when the waiter began; only to be compared with that of others
  std::string holder, holder_actor, holder_label;
  Token token{};
  std::string waiter_actor{};
};

// Names the row of one who waits.
struct WaiterKey {
  std::string_view name, owner;
};

// Those who wait, as questions and answers. A ticket is live while it is larger than the last one served and its row
// has not expired; once dead it stays so, and counts as none where it is shown.
// Threads: any. Every member waits at most until `deadline`, and throws Failure; a failure with may_have_run() leaves
// open what became of the question, and every question here may be put again.
class WaiterTable {
 public:
  virtual ~WaiterTable() = default;

  // Asks that who frees the name within `mark` says so to those who listen. A mark that is still fresh writes nothing.
  virtual void want(std::string_view name, Duration mark, Deadline deadline) = 0;
  // Takes a mark away that nobody is known to need any more.
  virtual void unwant(std::string_view name, Deadline deadline) = 0;
  // A place in the queue, and its ticket. The same owner keeps its ticket while it is live; then it gets a larger one.
  // Makes the lock's row where there is none, and marks it as want() does.
  virtual std::int64_t draw_ticket(const Wait& wait, Deadline deadline) = 0;
  // A row without a ticket, so that the waiter is seen by chain(). A ticket its owner had is given up.
  virtual void add(const Wait& wait, Deadline deadline) = 0;
  // Lets them live `ttl` from now. False: dead, or not there.
  virtual std::vector<bool> renew_waiters(std::span<const WaiterKey> keys, Duration ttl, Deadline deadline) = 0;
  // Takes a waiter out: it gave up, or has been granted the lock.
  virtual void remove(std::string_view name, std::string_view owner, Deadline deadline) = 0;
  // Takes out at most `limit` of those who have been dead for a minute; answers how many.
  virtual std::size_t forget_waiters(std::size_t limit, Deadline deadline) = 0;

  // Gives a lease to somebody else, under the next token; its row has the last of so many `tokens`, the others of which
  // the asker may give out as long as it is held. False: not handed over, since it is lost, has entries, is within its
  // at-least time, or a live ticket comes before that of `to`.
  virtual bool hand_over(const LeaseKey& from, const AcquireRequest& to, std::int64_t tokens, Deadline deadline) = 0;

  // Names another actor in the row of a key that still stands.
  virtual void rename(const LeaseKey& key, std::string_view actor, Deadline deadline) = 0;

  // Who waits for whom, from the actor that waits as `owner` to all who hold what it waits for, and on from each of
  // them, to those that do not wait, or back to itself; each step once, in no order, and at most 16,384 of them. Empty:
  // that waiter is not there, or nobody holds what it waits for. An actor is the same in all engines of its process:
  // the last 16 digits count.
  virtual std::vector<WaitEdge> chain(std::string_view actor, std::string_view owner, Deadline deadline) = 0;
  // The live waiters for names that begin with `prefix`, ordered by name, ticket and when they came.
  virtual std::vector<Waiter> waiters(std::string_view prefix, Deadline deadline) = 0;
  // Those who hold names together that begin with `prefix`, under live leases, ordered by name and token.
  virtual std::vector<Sharer> sharers(std::string_view prefix, Deadline deadline) = 0;
};

}  // namespace dlock::store
