// Which questions can be put to the lock table, and what the answers mean.
#pragma once

#include "dialects/listener.hpp"
#include "types/clock.hpp"
#include "types/failure.hpp"
#include "types/name.hpp"

#include <dlock/duration.hpp>
#include <dlock/holder.hpp>
#include <dlock/lock.hpp>
#include <dlock/options.hpp>
#include <dlock/token.hpp>
#include <dlock/transaction.hpp>
#include <dlock/waiter.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::store {

// Wants a lease. Asking twice with the same owner gives the same token, and a lease that ends no sooner. An owner that
// has released or withdrawn what it asked for is refused, as long as nobody else was granted the name since.
struct AcquireRequest {
  const Name& name;
  std::string_view owner, node, label, actor;
  Duration lease, at_least;
  std::string_view metadata;
  std::int64_t ticket = 0;  // drawn for the asker in the WaiterTable; 0: none, and any live ticket comes before it
  Mode mode = Mode::exclusive;
  std::int64_t permits = 1, limit = 0;  // with Mode::permits: how many are asked for, and how many there are
  bool alone =
      false;  // with Mode::node: where only other engines of the node are in, they are put out, under a new token
  // Its release was heard of just now: it is asked for in the cheapest way, which does not grant every row that is
  // free. So who is refused looks at it, and asks again if it is.
  bool freed = false;
};

struct Granted {
  std::optional<Token> token;  // empty: busy
  bool row_locked = false;     // busy only because another transaction has the row locked: worth one more look
};

// One grant, named exactly.
struct LeaseKey {
  std::string_view name, owner;
  Token token;
  Duration lease{};  // so long it is to last from a renewal or a fence on, if it does not anyway
  Mode mode = Mode::exclusive;
};

// What a release has left behind.
struct Left {
  bool was_there = false;   // false: it was no longer this key's (or had been freed before)
  bool still_held = false;  // by others of its node
};

enum class Renewed {
  yes,
  not_known_yet,  // still this key's, but its row is locked elsewhere: keep trying
  lost,
};

// What a renewal has answered.
struct Renewal {
  Renewed outcome = Renewed::lost;
  std::optional<Wanted> wanted{};  // of others who wait for the name, as far as the database shows it

  Renewal(Renewed what, std::optional<Wanted> by_whom = {}) noexcept : outcome(what), wanted(by_whom) {}
  friend bool operator==(const Renewal& one, Renewed outcome) noexcept { return one.outcome == outcome; }
  friend bool operator==(const Renewal&, const Renewal&) = default;
};

// When a name could be taken.
struct Availability {
  bool free = false;      // an attempt is worth it: nobody holds it, it is open, and no live ticket comes first
  Duration opens_in{};    // if not free: when it opens by itself, by the database's clock
  bool queued = false;    // a live ticket comes first
  std::string holder{};   // the actor of who holds it; empty: nobody
  Duration wanted_for{};  // for so long a release of it notifies
  std::string owner{};    // whose lease is live; empty: nobody's
  Token token{};          // the name's last
  bool shared = false;    // by a live lease of several, or that several may have
};

// What is known of a name before it is locked inside a transaction.
struct RowAvailability {
  bool there = false;  // false: there is no row
  bool free = false;
  Duration opens_in{};  // if not free
  Token floor{};        // read not before the row
};

// What keeps a row from being written that nobody holds, as far as an attempt could see.
struct Blocked {
  bool rightly = false;  // somebody holds the name after all, or another transaction has its row: it is busy
  std::string text{};    // if not rightly: what it is, in words; empty: nothing is seen any more
  bool locked = false;   // if rightly: nobody was seen to hold it, another transaction has its row
};

// What a read tells of who would acquire a name.
enum class Busy {
  no,       // it may be granted it, or not
  yes,      // it would be in vain
  lingers,  // so it would, though perhaps nobody holds it: the process that has it lets go when somebody else wants it
};

// What a read tells of a row that was written for a key.
enum class LeaseStatus { unwanted, wanted, gone };

// In the place of an at-least time: the one that was written ends, for the grant is of no use to who has it. Only where
// one holds the name: that of a node is that of its other entries, too.
constexpr Duration reopens{-1};

class CallerTransaction;  // store/caller_transaction.hpp
class WaiterTable;        // store/waiter_table.hpp
class ReaperTable;        // store/reaper_table.hpp

// What is under way now, and what has travelled together so far.
struct Traffic {
  unsigned limit = 0, open = 0, in_use = 0;  // connections
  std::size_t waiting = 0;                   // for a connection
  std::size_t in_flight = 0;                 // requests without an answer
  std::uint64_t batches = 0, batched = 0;    // statements that carried several requests, and how many these were
};

// The lock table as questions and answers. Durations are exact to the microsecond; all times are the database's.
// Threads: any. Every member waits at most until `deadline`, and throws Failure; a failure with may_have_run() leaves
// open what became of the question, and every question here may be put again.
class LockTable {
 public:
  virtual ~LockTable() = default;

  virtual Granted acquire(const AcquireRequest& ask, Deadline deadline) = 0;
  virtual Left leave(const LeaseKey& key, Deadline deadline) = 0;
  // For who does not ask for others.
  bool release(const LeaseKey& key, Deadline deadline) { return leave(key, deadline).was_there; }
  // The same for many that are exclusive and without tickets, ordered by name and none of them twice, in one statement.
  // An empty answer: it is to be asked for alone.
  virtual std::vector<std::optional<Granted>> acquire_together(std::span<const AcquireRequest> asks, Deadline) {
    return std::vector<std::optional<Granted>>(asks.size());
  }
  virtual std::vector<std::optional<bool>> release_together(std::span<const LeaseKey> keys, Deadline deadline) = 0;
  // Frees whatever `owner` holds on `name` in that mode, where several hold it but what is `kept`, for asks whose
  // answer never came. If nobody holds the name, it remembers that this owner is not to be granted it any more.
  virtual void withdraw(std::string_view name, std::string_view owner, Deadline deadline, Mode mode = Mode::exclusive,
                        Token kept = {}) = 0;
  // Waits until what was asked, and whose answer nobody has waited for, has been done or never will be: until then at
  // most; an instant that has passed only looks.
  virtual void drain(const Deadline&) {}
  virtual std::vector<Renewal> renew(std::span<const LeaseKey> keys, Deadline deadline) = 0;
  // Whether leases linger in this table: those of some engine do, or did. `tell`: those of the asker will.
  virtual bool lingering(bool /*tell*/, Deadline) { return false; }
  // Whether each row is still the key's, and whether somebody waits for it. The keys are in the order of names. Writes
  // nothing.
  virtual std::vector<LeaseStatus> lease_status(std::span<const LeaseKey> keys, Deadline) {
    return std::vector<LeaseStatus>(keys.size(), LeaseStatus::unwanted);
  }
  // Gives a lease a new length: it ends that long from now at the earliest, and unless `at_least` is 0 nobody else has
  // the name for so long from now; `reopens`: it has none any more. Never not_known_yet.
  virtual Renewal extend(const LeaseKey& key, Duration lease, Duration at_least, Deadline deadline) = 0;
  // Writes metadata into the row of a grant, and keeps it in the row beyond that if asked to. False: it is not this
  // key's any more.
  virtual bool update_metadata(const LeaseKey& key, std::string_view metadata, Keep keep, Deadline deadline) = 0;
  // Makes `to.owner` the owner of a grant that is not a node's, which keeps its token and is renewed; asking twice does
  // so once. Answers its mode. Empty: it is not `from`'s any more.
  virtual std::optional<Mode> adopt(const LeaseKey& from, const AcquireRequest& to, Deadline deadline) = 0;
  // Makes an exclusive lease the first of those that share the name, and the only one of them exclusive again, under
  // another owner and the next token, which is answered; asking twice does so once. Empty: it is not the key's any
  // more, or, to become exclusive, not the only one.
  virtual std::optional<Token> downgrade(const LeaseKey& from, std::string_view new_owner, Deadline deadline) = 0;
  virtual std::optional<Token> upgrade(const LeaseKey&, std::string_view /*new_owner*/, Deadline) { return {}; }
  // Frees a name whose token is still `seen`, moves its token on, and leaves the reason. False: it was free or had
  // moved on.
  virtual bool force_release(std::string_view name, Token seen, std::string_view reason, Deadline deadline) = 0;

  virtual Busy busy(std::string_view name, Deadline deadline) = 0;
  // The first of these names, which are in order, that is not to be had now. Empty: none.
  virtual std::optional<std::size_t> first_busy(std::span<const std::string_view> names, Deadline deadline) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (busy(names[i], deadline) != Busy::no) return i;
    return std::nullopt;
  }
  // For one who has that ticket, or none (0), and wants it exclusively.
  virtual Availability look(std::string_view name, std::int64_t ticket, Deadline deadline) = 0;
  // For one who would have it in the mode that it asks for: there, `owner` says whether it has it.
  virtual Availability look_for(const AcquireRequest& ask, Deadline deadline) = 0;
  virtual RowAvailability row_availability(std::string_view name, Deadline deadline) = 0;
  // After an attempt that could not have the row, by one who wants it exclusively, or in the mode that it asked for.
  // Waits only briefly for whatever is locked.
  virtual Blocked blocked(std::string_view name, Deadline deadline) = 0;
  virtual Blocked blocked_for(const AcquireRequest& ask, Deadline deadline) = 0;
  // Makes a free row, where one must be there before a transaction can lock it.
  virtual void make(std::string_view name, Deadline deadline) = 0;
  // A caller's own transaction, for the time of one call. Throws Failure{rejected} if it is another database's.
  virtual std::unique_ptr<CallerTransaction> caller_transaction(const TransactionRef& transaction) = 0;
  // What a fence in a transaction of a caller sends, as text.
  virtual std::string fence_sql(const LeaseKey& key) const = 0;
  // See dialects::Connection::position.
  virtual std::string position(Deadline) { return {}; }

  virtual std::optional<Holder> inspect(std::string_view name, Deadline deadline) = 0;
  // The length of the lease of one of several who hold a name: what inspect() says of it is that of the longest. Empty:
  // it is no holder any more.
  virtual std::optional<Duration> lease_of_holder(const LeaseKey& key, Deadline deadline) = 0;
  // Rows whose name begins with `prefix`, ordered by name.
  virtual std::vector<Holder> list(std::string_view prefix, Deadline deadline) = 0;

  // The token that every new row begins above.
  virtual Token floor(Deadline deadline) = 0;
  // The grants of a name that have ended, the newest first. Throws Failure{schema} where no history is kept.
  virtual std::vector<HistoryEntry> history(std::string_view /*name*/, std::size_t /*limit*/, Deadline) { return {}; }
  virtual bool keeps_history(Deadline) { return false; }
  // Listens for releases by others, on a connection of its own. Null: there is nothing to listen to, so that those who
  // wait have to look. Throws Failure.
  virtual std::unique_ptr<dialects::Listener> open_listener(Deadline deadline) = 0;

  // Those who wait for a lock of this table.
  virtual WaiterTable& waiting() noexcept = 0;
  // What has come to its end in it.
  virtual ReaperTable& reaping() noexcept = 0;

  // Called, on some thread that asks, whenever a connection was opened again after one had failed. It may look, by one
  // more statement, what the server that was reached is weak in (see weaknesses); empty: it could not be asked in time.
  // Set before use.
  using Look = std::function<std::optional<std::vector<std::string>>()>;
  using Reconnected = std::function<void(const Look& weaknesses)>;
  virtual void on_reconnect(Reconnected hook) = 0;
  // See dialects::Connection::weaknesses.
  virtual std::vector<std::string> weaknesses(Deadline deadline) = 0;
  virtual Duration smallest_margin() const noexcept = 0;
  // How long after its caller's time is over an answer is still waited for. See RoundTrip.
  virtual Duration answer_time() const noexcept { return std::chrono::milliseconds{500}; }
  // How long a request takes to the database and back, at least. 0: nobody knows, or next to nothing.
  virtual Duration round_trip() const noexcept = 0;

  // Whether a release is heard only by who knows which engine has the name.
  virtual bool heard_by_holder() const noexcept { return false; }

  // How busy its connections are, and how many requests have shared a statement. Asks nobody.
  virtual Traffic traffic() const { return {}; }
};

}  // namespace dlock::store
