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

  // See LockTable::blocked. `looks_free`: whether nobody is seen who holds the name.
  Blocked blocked(std::string_view name, const std::function<bool()>& looks_free, Deadline deadline) const;

 private:
  // Whether another transaction has the row locked; `shared`: as far as that can be told without keeping others who look
  // from it.
  bool locked(std::string_view name, bool shared, Deadline deadline) const;
  // `waited`: a read of the table was in vain.
  std::string words(bool waited, Deadline deadline) const;

  const dialects::Statement &locked_, &in_the_way_;
  const dialects::TableNames& names_;
  const OnConnection on_connection_;
};

}  // namespace dlock::store
