// How the questions about those who wait reach the database: as statements on a connection of the pool.
#pragma once

#include "dialects/dialect.hpp"
#include "store/waiter_table.hpp"

#include <functional>
#include <initializer_list>

namespace dlock::store {

class SqlWaiterTable final : public WaiterTable {
 public:
  // Does work on a connection, which is given back after it. The deadline is for one short request.
  using Work = std::function<void(dialects::Connection&, const Deadline&)>;
  using OnConnection = std::function<void(Deadline, const Work&)>;

  // `all` is the dialect's lock.sql, and outlives this.
  SqlWaiterTable(const dialects::Statements& all, OnConnection on_connection);

  void want(std::string_view name, Duration mark, Deadline deadline) override;
  void unwant(std::string_view name, Deadline deadline) override;
  std::int64_t draw_ticket(const Wait& wait, Deadline deadline) override;
  void add(const Wait& wait, Deadline deadline) override;
  std::vector<bool> renew_waiters(std::span<const WaiterKey> keys, Duration ttl, Deadline deadline) override;
  void remove(std::string_view name, std::string_view owner, Deadline deadline) override;
  std::size_t forget_waiters(std::size_t limit, Deadline deadline) override;
  bool hand_over(const LeaseKey& from, const AcquireRequest& to, std::int64_t tokens, Deadline deadline) override;
  void rename(const LeaseKey& key, std::string_view actor, Deadline deadline) override;
  std::vector<WaitEdge> chain(std::string_view actor, std::string_view owner, Deadline deadline) override;
  std::vector<Waiter> waiters(std::string_view prefix, Deadline deadline) override;
  std::vector<Sharer> sharers(std::string_view prefix, Deadline deadline) override;

 private:
  using Read = std::function<void(const Answer&)>;
  void ask(const dialects::Statement& statement, std::initializer_list<Argument> arguments, Deadline deadline,
           const Read& read) const;
  // What is worth only so much time.
  void post(const dialects::Statement& statement, std::initializer_list<Argument> arguments, Deadline deadline) const;

  const OnConnection on_connection_;
  const dialects::Statement &want_, &unwant_, &draw_ticket_, &add_, &renew_waiters_, &remove_, &dead_waiters_,
      &forget_waiters_, &hand_over_, &rename_, &rename_holder_, &chain_, &waiters_, &sharers_;
};

}  // namespace dlock::store
