// How a name is held by several: each has a row of its own, and the lock's row is their gate.
#pragma once

#include "dialects/statement.hpp"
#include "store/lock_table.hpp"
#include "types/row.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::dialects {
class Connection;
}

namespace dlock::store {

// Threads: any. Nothing is kept here. Every call may be repeated, since a holder has an owner of its own. Fails:
// Failure.
class Holders {
 public:
  // Runs `work` on a connection.
  using OnConnection =
      std::function<void(const Deadline&, const std::function<void(dialects::Connection&, const Deadline&)>&)>;
  // Is called when a place has come free that somebody waits for.
  using Notify = std::function<void()>;

  Holders(const dialects::Statements& all, OnConnection on_connection, Notify notify);

  Granted add(const AcquireRequest& ask, Deadline deadline) const;
  Left drop(const LeaseKey& key, Deadline deadline) const;
  // Drops whatever the owner has, which is not granted the name any more for as long as a late attempt may take.
  // But what is `kept`.
  void withdraw(std::string_view name, std::string_view owner, Token kept, Deadline deadline) const;
  std::vector<Renewal> renew(std::span<const LeaseKey> keys, Deadline deadline) const;
  Renewal extend(const LeaseKey& key, Duration lease, Duration at_least, Deadline deadline) const;
  bool update_metadata(const LeaseKey& key, std::string_view metadata, Keep keep, Deadline deadline) const;
  // The mode in which it is held. Empty: it is not `from`'s any more.
  std::optional<Mode> adopt(const LeaseKey& from, const AcquireRequest& to, Deadline deadline) const;
  // Empty: there is no such holder.
  std::optional<Duration> lease_of(const LeaseKey& key, Deadline deadline) const;
  Availability look(const AcquireRequest& ask, Deadline deadline) const;
  // From an exclusive lease to a shared one, and back: the new owner's token. Empty: it is not the key's any more; or
  // there are others.
  std::optional<Token> downgrade(const LeaseKey& from, std::string_view new_owner, Deadline deadline) const;
  std::optional<Token> upgrade(const LeaseKey& from, std::string_view new_owner, Deadline deadline) const;
  // Under which owner the name is held by several, with this token, and when that was so, on the database's clock.
  // Empty: it is not.
  struct Gate {
    std::string owner;
    std::int64_t seen_at = 0;
  };
  std::optional<Gate> gate(std::string_view name, Token token, Deadline deadline) const;
  // Those who lived when their gate was seen, which has been ended by force since. Nobody is told whether it could be
  // done: so what passes is tried again here. Where it fails they are told of as dead.
  void drop(std::string_view name, const Gate& gate, Deadline deadline) const noexcept;

 private:
  using Read = std::function<void(const Answer&)>;
  void ask(const dialects::Statement& statement, std::span<const Argument> arguments, Deadline deadline,
           const Read& read) const;
  Left drop(std::string_view name, std::string_view owner, std::int64_t token, Duration refused,
            Deadline deadline) const;

  const dialects::Statement &add_holder_, &drop_holder_, &renew_holders_, &extend_holder_, &update_holder_metadata_,
      &adopt_holder_, &look_to_join_, &holder_lease_, &downgrade_, &upgrade_, &gate_, &drop_gate_;
  const OnConnection on_connection_;
  const Notify notify_;
};

}  // namespace dlock::store
