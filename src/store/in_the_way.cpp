// Looks at a row without waiting for it, and if that is in vain, at what has its table locked.
#include "store/in_the_way.hpp"

#include <utility>

namespace dlock::store {

InTheWay::InTheWay(const dialects::Statements& all, const dialects::TableNames& names, OnConnection on_connection)
    : locked_(all.at("locked", {"name", "shared"})),
      in_the_way_(all.at("in_the_way", {"schema", "table", "waited"})),
      names_(names),
      on_connection_(std::move(on_connection)) {}

Blocked InTheWay::blocked(std::string_view name, const std::function<bool()>& looks_free, Deadline deadline) const {
  try {
    if (!looks_free()) return {true, {}};
    if (locked(name, true, deadline)) return {true, {}, true};
    auto found = words(false, deadline);
    // A shared lock on the row counts where nothing else explains it. This look locks out others who look, but not those
    // who found the table locked: they are answered above.
    if (found.empty() && locked(name, false, deadline)) return {true, {}, true};
    return {false, std::move(found)};
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::locked) throw;
    auto found = words(true, deadline);
    return {false, found.empty() ? std::string(failure.what()) : std::move(found)};
  }
}

bool InTheWay::locked(std::string_view name, bool shared, Deadline deadline) const {
  const Argument arguments[] = {name, std::int64_t{shared ? 1 : 0}};
  const auto row = on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& until) {
    return std::string(connection.run(locked_, arguments, until).rows() == 0 ? "" : "locked");
  });
  return !row.empty();
}

std::string InTheWay::words(bool waited, Deadline deadline) const {
  const Argument arguments[] = {std::string_view{names_.schema}, std::string_view{names_.lock},
                                std::int64_t{waited ? 1 : 0}};
  return on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& until) {
    const auto& answer = connection.run(in_the_way_, arguments, until);
    return answer.rows() == 0 || answer.is_null(0, 0) ? std::string{} : answer.text(0, 0);
  });
}

}  // namespace dlock::store
