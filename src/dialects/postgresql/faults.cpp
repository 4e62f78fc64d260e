// This file knows which SQLSTATE is which cause (PostgreSQL manual, appendix A).
#include "faults.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

struct Row {
  std::string_view sqlstate;  // or its class, the first two characters
  Cause cause;
};

// The first match from the top counts.
constexpr Row table[] = {
    {"40P01", Cause::deadlock},
    {"40", Cause::serialization},
    {"55P03", Cause::locked},          // lock_timeout, NOWAIT
    {"25006", Cause::read_only},       // a standby, or default_transaction_read_only
    {"53100", Cause::read_only},       // disk full
    {"53300", Cause::refused},         // too many connections
    {"53", Cause::refused},
    {"57P01", Cause::disconnected},    // terminated by an administrator
    {"57P02", Cause::disconnected},    // crash of the server
    {"57P03", Cause::refused},         // starting up, shutting down
    {"57P05", Cause::disconnected},    // idle session timeout
    {"25P03", Cause::disconnected},    // idle in transaction timeout
    {"57014", Cause::timed_out},       // cancelled, statement_timeout
    {"08", Cause::disconnected},
    {"26000", Cause::stale_statement}, // a prepared statement that this server process does not know
    {"42P05", Cause::stale_statement},
    {"0A000", Cause::stale_statement}, // cached plan must not change result type
    {"42P01", Cause::schema},
    {"42703", Cause::schema},
    {"42P10", Cause::schema},          // no unique constraint for ON CONFLICT: the primary key is missing
    {"3F000", Cause::schema},
    {"42501", Cause::permission},
    {"28", Cause::permission},
    {"3D000", Cause::rejected},
};

bool says(std::string_view text, std::string_view words) { return text.find(words) != std::string_view::npos; }

std::string advice(Cause cause, const std::string& text, const std::string& user) {
  if (cause == Cause::schema) return "; run \"dlock-migrate up\"";
  if (cause != Cause::permission) return {};
  if (says(text, "for schema")) return fmt::format("; the role needs: GRANT USAGE ON SCHEMA … TO {}", user);
  if (says(text, "for table") || says(text, "for relation"))
    return fmt::format("; the role needs: GRANT SELECT, INSERT, UPDATE, DELETE ON … TO {} (the history table and the view: SELECT)",
                       user);
  return {};
}

}  // namespace

Failure failure_of(std::string_view sqlstate, const std::string& text, const std::string& user, bool may_have_run) {
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const Row& row) {
    return row.sqlstate == sqlstate || (row.sqlstate.size() == 2 && sqlstate.substr(0, 2) == row.sqlstate);
  });
  const auto cause = found == std::end(table) ? Cause::rejected : found->cause;
  return {cause, fmt::format("PostgreSQL: {}{}", text, advice(cause, text, user)), std::string(sqlstate),
          may_have_run && cause == Cause::disconnected};
}

Failure connect_failure(const std::string& text, const std::string& user) {
  auto cause = Cause::refused;
  for (const std::string_view words : {"authentication failed", "no pg_hba.conf entry", "permission denied for database",
                                       "no password supplied", "is not permitted to log in"})
    if (says(text, words)) cause = Cause::permission;
  if (says(text, "role \"") && says(text, "does not exist")) cause = Cause::permission;
  if (says(text, "database \"") && says(text, "does not exist")) cause = Cause::rejected;
  for (const std::string_view words : {"does not support SSL", "SSL error", "certificate", "sslmode", "root.crt"})
    if (says(text, words)) cause = Cause::rejected;
  return {cause, fmt::format("PostgreSQL: cannot connect as {}: {}", user.empty() ? "the default role" : user, text)};
}

}  // namespace dlock::dialects::DLOCK_DIALECT
