// Makes and takes away the history of the locks, as calls of dlock::schema.
#include "api/migration.hpp"
#include "migrate/recording.hpp"

#include <dlock/history.hpp>

#include <utility>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

template <class Call>
HistoryReport reported_of(std::string_view url, const Options& options, Call call) {
  auto migrate = migrate_options(options);
  migrate.names = names_of(options);
  auto resolved = resolve(url, options, false);
  migrate::LockRecording recording(resolved.dialect, std::move(resolved.connector), std::move(migrate));
  return reported_change([&] { return call(recording); });
}

}  // namespace

HistoryReport make_history(std::string_view url, const Options& options) {
  return reported_of(url, options, [](migrate::LockRecording& recording) { return recording.make(); });
}

HistoryReport drop_history(std::string_view url, const Options& options) {
  return reported_of(url, options, [](migrate::LockRecording& recording) { return recording.drop(); });
}

std::string make_history_sql(std::string_view dialect, const Options& options) {
  return migrate::RecordingStatements(dialect_named(dialect), names_of(options)).script(true);
}

std::string drop_history_sql(std::string_view dialect, const Options& options) {
  return migrate::RecordingStatements(dialect_named(dialect), names_of(options)).script(false);
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
