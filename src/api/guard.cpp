// Makes and takes away the guard of a user's table, as calls of dlock::schema.
#include "migrate/guard.hpp"
#include "api/migration.hpp"

#include <dlock/guard.hpp>

#include <utility>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

GuardReport bring(std::string_view url, const GuardedColumn& column, const Options& options, bool made) {
  auto resolved = resolve(url, options, false);
  migrate::TableGuard change(resolved.dialect, std::move(resolved.connector), column, options);
  return reported([&] { return change.bring(made); });
}

}  // namespace

GuardReport make_guard(std::string_view url, const GuardedColumn& column, const Options& options) {
  return bring(url, column, options, true);
}

GuardReport drop_guard(std::string_view url, const GuardedColumn& column, const Options& options) {
  return bring(url, column, options, false);
}

std::string make_guard_sql(std::string_view dialect, const GuardedColumn& column) {
  return migrate::GuardStatements(dialect_named(dialect), column).script(true);
}

std::string drop_guard_sql(std::string_view dialect, const GuardedColumn& column) {
  return migrate::GuardStatements(dialect_named(dialect), column).script(false);
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
