// Which SQLSTATE is which cause (PostgreSQL manual, appendix A), also of a connection that was refused; and what a
// person is advised.
#include "faults.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::dialects::postgresql {
namespace {

struct SqlstateCause {
  std::string_view sqlstate;  // or its class, the first two characters
  Cause cause;
};

// The first match from the top counts; what is not here is rejected.
constexpr SqlstateCause table[] = {
    {"40P01", Cause::deadlock},
    {"40003", Cause::disconnected},  // nobody knows whether the statement completed
    {"40", Cause::serialization},
    {"55P03", Cause::locked},        // lock_timeout, NOWAIT
    {"25006", Cause::read_only},     // a standby, or default_transaction_read_only
    {"53100", Cause::read_only},     // disk full
    {"58", Cause::read_only},        // an input or output error below the server
    {"XX", Cause::read_only},        // an internal error of the server
    {"53", Cause::refused},          // too many connections, no memory
    {"57P01", Cause::disconnected},  // terminated by an administrator
    {"57P02", Cause::disconnected},  // crash of the server
    {"57P03", Cause::refused},       // starting up, shutting down
    {"57P04", Cause::disconnected},  // the database was dropped
    {"57P05", Cause::disconnected},  // idle_session_timeout
    {"25P03", Cause::disconnected},  // idle_in_transaction_session_timeout
    {"25P04", Cause::disconnected},  // transaction_timeout
    {"57014", Cause::timed_out},     // cancelled, statement_timeout
    {"08", Cause::disconnected},
    {"26000", Cause::stale_statement},  // a prepared statement that this server process does not know
    {"42P05", Cause::stale_statement},  // or knows already
    {"42P01", Cause::schema},
    {"42703", Cause::schema},
    {"42P10", Cause::schema},  // no unique constraint for ON CONFLICT: the primary key is missing
    {"42P16", Cause::schema},
    {"42804", Cause::schema},  // columns of other types
    {"42809", Cause::schema},  // not a table
    {"42883", Cause::schema},  // no operator for a column's type
    {"55000", Cause::schema},  // a view that takes no writes
    {"23502", Cause::schema},  // a column that must not be NULL and is not known here
    {"3F000", Cause::schema},
    {"42501", Cause::permission},
    {"28", Cause::permission},
};

Cause cause_of(std::string_view sqlstate) {
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const SqlstateCause& row) {
    return row.sqlstate == sqlstate || (row.sqlstate.size() == 2 && sqlstate.substr(0, 2) == row.sqlstate);
  });
  return found == std::end(table) ? Cause::rejected : found->cause;
}

bool says(std::string_view text, std::string_view words) { return text.find(words) != std::string_view::npos; }

// What follows `words` in the text, without quotes, up to the end of its sentence; empty if they are not there.
std::string_view named_after(std::string_view text, std::string_view words) {
  const auto at = text.find(words);
  if (at == std::string_view::npos) return {};
  auto name = text.substr(at + words.size());
  name = name.substr(0, name.find(';'));
  if (name.size() > 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
  return name;
}

// A role as it would be written in SQL.
std::string identifier(std::string_view name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  return plain ? std::string(name) : fmt::format("\"{}\"", name);
}

// The right behind "permission denied for …", as the statement that gives it.
std::string missing_right(std::string_view text, std::string_view user) {
  const auto role = identifier(user);
  if (const auto name = named_after(text, "denied for schema "); !name.empty())
    return fmt::format("; the role needs: GRANT USAGE ON SCHEMA {} TO {}", name, role);
  if (const auto name = named_after(text, "denied for database "); !name.empty())
    return fmt::format("; the role needs: GRANT CONNECT ON DATABASE {} TO {}", name, role);
  if (const auto name = named_after(text, "must be owner of "); !name.empty())
    return fmt::format("; it must belong to the role that migrates: ALTER … OWNER TO {}", role);
  for (const std::string_view words : {"denied for table ", "denied for relation ", "denied for view "}) {
    const auto name = named_after(text, words);
    if (name.empty()) continue;
    if (name.ends_with("_schema_history") || name.ends_with("_status"))
      return fmt::format("; the role needs: GRANT SELECT ON {} TO {}", name, role);
    return fmt::format("; the role needs: GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}{}", name, role,
                       name.ends_with("_waiter") || name.ends_with("_holder") ? "" : " (DELETE only to reap)");
  }
  return {};
}

std::string advice(std::string_view sqlstate, Cause cause, std::string_view text, std::string_view user) {
  if (sqlstate == "42501") return missing_right(text, user);
  if (sqlstate == "28P01") return "; the password comes from the URL, from PGPASSWORD or from the password file";
  if (sqlstate == "23502" && says(text, "\"token\""))
    return "; the floor row of the lock table is missing: run \"dlock-migrate repair\"";
  if (sqlstate == "25006")
    return "; locks need a server that takes writes: name the primary, or all hosts, in the URL; if it is the "
           "primary, the transaction is READ ONLY, or default_transaction_read_only is on for the database or the role";
  if (cause == Cause::schema) return "; run \"dlock-migrate up\"";
  if (cause == Cause::stale_statement)
    return "; something lends this session to others and could not be recognised: nothing is prepared from here on "
           "(as by prepared=off in the URL, and by EngineOptions::prepared_statements)";
  return {};
}

struct ServerMessage {
  std::string text, sqlstate;
};

// libpq's verbose form is "FATAL:  28P01: password …", followed by a line with the place in the server's source.
ServerMessage told_by(std::string_view verbose) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  ServerMessage told;
  while (!verbose.empty()) {
    auto line = verbose.substr(0, verbose.find('\n'));
    verbose.remove_prefix(std::min(line.size() + 1, verbose.size()));
    const auto number = line.rfind(".c:");
    if (number != std::string_view::npos &&
        std::all_of(line.begin() + static_cast<std::ptrdiff_t>(number) + 3, line.end(), digit))
      continue;
    for (auto at = line.find(":  "); at != std::string_view::npos; at = line.find(":  ", at + 1)) {
      const auto code = line.substr(at + 3, 5);
      if (code.size() < 5 || line.substr(at + 8, 2) != ": " ||
          !std::all_of(code.begin(), code.end(), [&](char c) { return digit(c) || (c >= 'A' && c <= 'Z'); }))
        continue;
      told.sqlstate = code;
      told.text += line.substr(0, at + 2);
      line.remove_prefix(at + 10);
      break;
    }
    told.text += line;
    told.text += '\n';
  }
  told.text = in_one_line(told.text);
  return told;
}

}  // namespace

std::string in_one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    auto part = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    part.remove_prefix(std::min(part.find_first_not_of(" \t\r"), part.size()));
    part = part.substr(0, part.find_last_not_of(" \t\r") + 1);
    if (!part.empty()) line += (line.empty() ? "" : "; ") + std::string(part);
  }
  return line;
}

Failure failure_of(std::string_view sqlstate, std::string_view text, std::string_view user, bool sent) {
  const auto cause = cause_of(sqlstate);
  return {cause, fmt::format("PostgreSQL: {}{}", in_one_line(text), advice(sqlstate, cause, text, user)),
          std::string(sqlstate), sent && cause == Cause::disconnected};
}

Failure connect_failure(std::string_view verbose, std::string_view user, bool needs_password) {
  auto [text, sqlstate] = told_by(verbose);
  auto cause = Cause::refused;
  if (!sqlstate.empty()) {
    cause = cause_of(sqlstate);
    // Whatever passes by itself: nothing was asked yet.
    if (cause != Cause::permission && cause != Cause::rejected) cause = Cause::refused;
    text += advice(sqlstate, cause, text, user);
  } else if (needs_password) {
    cause = Cause::permission;
    text += advice("28P01", cause, text, user);
  } else {
    // libpq refuses what the server offers: asking again cannot help.
    for (const std::string_view words : {"does not support SSL", "certificate", "sslmode", "root.crt",
                                         "channel binding", "authentication method", "invalid "})
      if (says(text, words)) cause = Cause::rejected;
  }
  if (sqlstate == "3D000") text += "; create it, or name another one in the URL";
  return {cause, fmt::format("PostgreSQL: cannot connect as {}: {}", user.empty() ? "the default role" : user, text),
          sqlstate};
}

}  // namespace dlock::dialects::postgresql
