// Makes and takes away the history of the locks, as calls of dlock::schema.
#include "api/migration.hpp"
#include "migrate/recording.hpp"

#include <dlock/history.hpp>

#include <utility>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

HistoryReport bring(std::string_view url, const Options& options, bool made) {
  auto resolved = resolve(url, options, false);
  migrate::LockRecording change(resolved.dialect, std::move(resolved.connector), options);
  return reported([&] { return change.bring(made); });
}

}  // namespace

HistoryReport make_history(std::string_view url, const Options& options) { return bring(url, options, true); }

HistoryReport drop_history(std::string_view url, const Options& options) { return bring(url, options, false); }

std::string make_history_sql(std::string_view dialect, const Options& options) {
  return migrate::RecordingStatements(dialect_named(dialect), migrate::names_of(options)).script(true);
}

std::string drop_history_sql(std::string_view dialect, const Options& options) {
  return migrate::RecordingStatements(dialect_named(dialect), migrate::names_of(options)).script(false);
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
