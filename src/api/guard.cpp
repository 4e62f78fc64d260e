// Makes and takes away the guard of a user's table, as calls of dlock::schema.
#include "migrate/guard.hpp"
#include "api/migration.hpp"

#include <dlock/guard.hpp>

#include <utility>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

template <class Call>
GuardReport reported_of(std::string_view url, const GuardedColumn& column, const Options& options, Call call) {
  auto migrate = migrate_options(options);
  auto resolved = resolve(url, options, false);
  migrate::TableGuard guard(resolved.dialect, std::move(resolved.connector), column, std::move(migrate));
  return reported_change([&] { return call(guard); });
}

}  // namespace

GuardReport make_guard(std::string_view url, const GuardedColumn& column, const Options& options) {
  return reported_of(url, column, options, [](migrate::TableGuard& guard) { return guard.make(); });
}

GuardReport drop_guard(std::string_view url, const GuardedColumn& column, const Options& options) {
  return reported_of(url, column, options, [](migrate::TableGuard& guard) { return guard.drop(); });
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
