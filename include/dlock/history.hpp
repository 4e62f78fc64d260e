// Has the database keep a history of the grants that have ended: what dlock-migrate history does, as calls.
// Engine::history reads it.
#pragma once

#include <dlock/export.hpp>
#include <dlock/guard.hpp>
#include <dlock/schema.hpp>

#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

namespace schema {

using HistoryReport = GuardReport;

// From make_history() on the database writes a row for each grant that ends into <table>_history, in the same
// transaction, whichever program ends it: by triggers, so that a rollback leaves none, and engines need not know of it.
// It grows until an engine with EngineOptions::history cuts it. Any number of callers may do so at once; programs may
// lock meanwhile. Threads: any. Of `options` these count: the names of tables, timeouts, retries, `dry_run`, `stop`,
// `observer`.
// Fails: Error{unavailable, timeout, permission}, and Error{misuse} for names that cannot be those of tables. Where
// there is no lock table, or another one has the history's name, the report says so.
DLOCK_EXPORT HistoryReport make_history(std::string_view url, const Options& options = {});

// Takes it away again, with all its rows.
DLOCK_EXPORT HistoryReport drop_history(std::string_view url, const Options& options = {});

// The statements of both for a database of dialects(), without a connection. Fails: Error{misuse}.
DLOCK_EXPORT std::string make_history_sql(std::string_view dialect, const Options& options = {});
DLOCK_EXPORT std::string drop_history_sql(std::string_view dialect, const Options& options = {});

}  // namespace schema
}  // namespace v0
}  // namespace dlock
