// Tells what keeps a row from being written that nobody holds.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/statement.hpp"
#include "store/lock_table.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace dlock::store {

// Threads: any. Owns: nothing; what it is made from must outlive it. Fails: members throw Failure.
class InTheWay {
 public:
  using Work = std::function<std::string(dialects::Connection&, const Deadline&)>;
  using OnConnection = std::function<std::string(Deadline, const Work&)>;
  InTheWay(const dialects::Statements& all, const dialects::TableNames& names, OnConnection on_connection);

  // See LockTable::blocked. `shares`: of one who would share the name, which writes the holders' table, too.
  // `looks_free`: whether nobody is seen who holds the name.
  Blocked blocked(std::string_view name, bool shares, const std::function<bool()>& looks_free, Deadline deadline) const;

  // What keeps the tables from being looked at, after that was in vain. Empty: nothing is seen any more.
  std::string said_of_tables(Deadline deadline) const { return said_of_look({}, true, deadline); }

 private:
  // What is seen without waiting for it.
  std::string seen(bool shares, Deadline deadline) const;
  // What is said where a look at all tables was in vain, as it failed; empty: nothing is.
  std::string said_of_look(std::string_view name, bool shares, Deadline deadline) const;
  std::string said_of(std::string_view table, Deadline deadline) const;
  // Whether another transaction has the row locked. Throws Failure{locked} where its table is.
  bool locked(std::string_view name, Deadline deadline) const;
  // Whether it is in vain.
  bool in_vain(const dialects::Statement& touch, std::string_view name, Deadline deadline) const;
  std::string ask(const dialects::Statement& statement, std::span<const Argument> arguments, Deadline deadline) const;

  // `locked_` is null where the database has no locked rows; `in_the_way_` where it does not show what has a table
  // locked, so that only who waits finds that out, by the other three; those are null where it does show it.
  const dialects::Statement *locked_, *in_the_way_, *touch_holders_, *touch_waiters_, *locked_table_;
  const dialects::TableNames& names_;
  const OnConnection on_connection_;
};

}  // namespace dlock::store
