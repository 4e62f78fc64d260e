// Installing the table is migrating it.
#include "api/open.hpp"

#include <dlock/engine.hpp>
#include <dlock/error.hpp>
#include <dlock/schema.hpp>

namespace dlock {
inline namespace v0 {

void Engine::install_schema(std::string_view url, const EngineOptions& options) {
  api::check(options);
  schema::Options migrate;
  migrate.schema = options.schema;
  migrate.table = options.table;
  migrate.history_table = options.history_table;
  migrate.application = options.application;
  migrate.timeouts.connect = options.timeouts.connect;
  migrate.credentials = options.credentials;
  const auto report = schema::up(url, migrate);
  if (report.state == schema::SchemaState::good) return;
  throw Error(report.state == schema::SchemaState::locked ? Fault::timeout : Fault::schema,
              report.hint.empty() ? report.message : report.message + "; " + report.hint, report.code);
}

}  // namespace v0
}  // namespace dlock
