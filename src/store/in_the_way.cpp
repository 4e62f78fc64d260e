// In which order it is looked for what keeps a row from being written: a holder, a lock on a table, a lock on the row.
// The words for it: waiting.sql.
#include "store/in_the_way.hpp"

#include "types/mutant.hpp"

#include <utility>

namespace dlock::store {
namespace {

const dialects::Statement* if_there(const dialects::Statements& all, std::string_view name,
                                    std::initializer_list<std::string_view> arguments) {
  return all.has(name) ? &all.at(name, arguments) : nullptr;
}

}  // namespace

InTheWay::InTheWay(const dialects::Statements& all, const dialects::TableNames& names, OnConnection on_connection)
    : locked_(if_there(all, "locked", {"name"})),
      in_the_way_(if_there(all, "in_the_way", {"schema", "lock", "holder", "waiter", "shares"})),
      touch_holders_(if_there(all, "touch_holders", {"name"})),
      touch_waiters_(if_there(all, "touch_waiters", {"name"})),
      locked_table_(if_there(all, "locked_table", {"schema", "table"})),
      names_(names),
      on_connection_(std::move(on_connection)) {}

// A table that is locked as a whole comes before a row of it: who has found the one locked may keep the other one.
Blocked InTheWay::blocked(std::string_view name, bool shares, const std::function<bool()>& looks_free,
                          Deadline deadline) const {
  try {
    if (!looks_free()) return {true, {}};
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::locked) throw;
    auto said = said_of_look(name, shares, deadline);
    return {false, said.empty() ? std::string(failure.what()) : std::move(said)};
  }
  if (planted("row_hides_table") && locked(name, deadline)) return {true, {}, true};
  if (auto found = seen(shares, deadline); !found.empty()) return {false, std::move(found)};
  if (shares && touch_holders_ != nullptr && !planted("holders_table_not_looked_at") &&
      in_vain(*touch_holders_, name, deadline))
    return {false, said_of(names_.holder(), deadline)};
  try {
    return locked(name, deadline) ? Blocked{true, {}, true} : Blocked{};
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::locked) throw;
    auto said = said_of(names_.lock, deadline);
    return {false, said.empty() ? std::string(failure.what()) : std::move(said)};
  }
}

std::string InTheWay::said_of_look(std::string_view name, bool shares, Deadline deadline) const {
  if (locked_table_ == nullptr) return seen(shares, deadline);
  // Not the lock table first: it would be waited for once more, and most often it is the one.
  if (in_vain(*touch_holders_, name, deadline)) return said_of(names_.holder(), deadline);
  if (in_vain(*touch_waiters_, name, deadline)) return said_of(names_.waiter(), deadline);
  return said_of(names_.lock, deadline);
}

std::string InTheWay::seen(bool shares, Deadline deadline) const {
  if (in_the_way_ == nullptr) return {};
  const auto holder = names_.holder(), waiter = names_.waiter();
  const Argument arguments[] = {std::string_view{names_.schema}, std::string_view{names_.lock},
                                std::string_view{holder}, std::string_view{waiter}, std::int64_t{shares ? 1 : 0}};
  return ask(*in_the_way_, arguments, deadline);
}

std::string InTheWay::said_of(std::string_view table, Deadline deadline) const {
  if (locked_table_ == nullptr) return seen(false, deadline);
  const Argument arguments[] = {std::string_view{names_.schema}, table};
  return ask(*locked_table_, arguments, deadline);
}

bool InTheWay::locked(std::string_view name, Deadline deadline) const {
  if (locked_ == nullptr) return false;
  const Argument arguments[] = {name};
  return !on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& until) {
            return std::string(connection.run(*locked_, arguments, until).rows() == 0 ? "" : "locked");
          }).empty();
}

bool InTheWay::in_vain(const dialects::Statement& touch, std::string_view name, Deadline deadline) const {
  const Argument arguments[] = {name};
  try {
    on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& until) {
      connection.run(touch, arguments, until);
      return std::string{};
    });
    return false;
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::locked) throw;
    return true;
  }
}

std::string InTheWay::ask(const dialects::Statement& statement, std::span<const Argument> arguments,
                          Deadline deadline) const {
  return on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& until) {
    const auto& answer = connection.run(statement, arguments, until);
    return answer.rows() == 0 || answer.is_null(0, 0) ? std::string{} : answer.text(0, 0);
  });
}

}  // namespace dlock::store
