// What is wrong with a history, which of several wrongs is told, and what to run then: without SQL and without a clock.
// And with which tables an engine works.
#include "migrate/assessment.hpp"

#include "types/name.hpp"

#include <dlock/error.hpp>
#include <dlock/version.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock::migrate {
namespace {

// Versions up to the first gap or unfinished one. Rows may begin at a baseline.
int current_of(const SchemaSnapshot& found) {
  int current = 0;
  for (const auto& row : found.rows) {
    const bool begins = current == 0 && row.state == "baseline";
    if (!row.done() || (row.number != current + 1 && !begins)) break;
    current = row.number;
  }
  return current;
}

std::string half_done(const HistoryRow& row) {
  if (row.running())
    return fmt::format("version {} was interrupted after step {} of {} ({}, dlock {})", row.number, row.steps_done,
                       row.steps_total, row.applied_by, row.tool_version);
  return fmt::format("version {} failed at step {} of {}: {}", row.number,
                     std::min(row.steps_done + 1, row.steps_total), row.steps_total, row.error);
}

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Failure(Cause::schema, message + "; " + hint);
}

}  // namespace

std::string shown(const dialects::TableNames& names) {
  return names.schema.empty() ? names.lock : names.schema + "." + names.lock;
}

Named named(const dialects::TableNames& names, std::string_view default_schema) {
  const dialects::TableNames defaults;
  std::string flags;
  if (!names.schema.empty() && names.schema != default_schema) flags += " --schema " + names.schema;
  if (names.lock != defaults.lock) flags += " --table " + names.lock;
  if (names.history != names.lock + "_schema_history") flags += " --history-table " + names.history;
  return {names, std::move(flags)};
}

Named named_on(dialects::Connection& connection, dialects::TableNames names) {
  const auto default_schema = connection.default_schema(soon());
  if (names.schema.empty()) names.schema = default_schema;
  if (names.schema.empty())
    throw Error(Fault::misuse,
                "no schema is selected on this connection; name a database in the URL, or pass --schema");
  return named(names, default_schema);
}

dialects::TableNames names_of(const schema::Options& options) {
  check_identifier("the table", options.table);
  if (!options.schema.empty()) check_identifier("the schema", options.schema);
  if (!options.history_table.empty()) check_identifier("the history table", options.history_table);
  dialects::TableNames names;
  names.schema = options.schema;
  names.lock = options.table;
  names.history = options.history_table.empty() ? options.table + "_schema_history" : options.history_table;
  if (names.history == names.lock || names.history == names.status() || names.history == names.waiter() ||
      names.history == names.holder() || names.history == names.lock_history())
    throw Error(Fault::misuse,
                fmt::format("the history table {} has the name of another table of dlock", in_quotes(names.history)));
  return names;
}

std::string hint_command(std::string_view command, const Named& table) {
  return fmt::format("run \"dlock-migrate {}{}\"", command, table.flags);
}

Assessment assess(const SchemaSnapshot& found, const std::vector<Migration>& migrations, std::string_view client,
                  const Named& table) {
  const auto& names = table.names;
  Assessment result;
  result.latest = static_cast<int>(migrations.size());
  result.current = current_of(found);
  const auto judge = [&](SchemaState state, std::string message, std::string hint) {
    result.state = state;
    result.message = std::move(message);
    result.hint = std::move(hint);
    return result;
  };

  for (const auto& row : found.rows) {
    if (row.number < 1)
      return judge(
          SchemaState::drift,
          fmt::format("the history {} has a row of version {}, and versions begin with 1", names.history, row.number),
          "it is no row of dlock's: take it out");
    if (row.format > history_format)
      return judge(SchemaState::incompatible,
                   fmt::format("the history {} has the format {}; dlock {} knows formats up to {}", names.history,
                               row.format, client, history_format),
                   "upgrade dlock");
    if (newer(row.min_client, client))
      return judge(SchemaState::incompatible,
                   fmt::format("version {} of the table {} needs dlock {} or newer; this is dlock {}", row.number,
                               shown(names), row.min_client, client),
                   "upgrade dlock");
  }
  for (const auto& row : found.rows) {
    if (row.number > result.latest) break;
    const auto& migration = migrations[static_cast<std::size_t>(row.number - 1)];
    if (row.checksum != migration.checksum)
      return judge(
          SchemaState::drift,
          fmt::format("the checksum of version {} in the history {} is {}; this dlock has {}", row.number,
                      names.history, row.checksum, migration.checksum),
          fmt::format("another build of dlock, or another tool, made this version; if the tables are right, {}",
                      hint_command(fmt::format("repair --mark-applied {}", row.number), table)));
  }
  for (const auto& row : found.rows) {
    if (row.done()) continue;
    if (row.running() && row.lease_left > Duration{})
      return judge(SchemaState::locked,
                   fmt::format("another migrator is at work on version {} ({}, dlock {}, step {} of {})", row.number,
                               row.applied_by, row.tool_version, row.steps_done, row.steps_total),
                   "wait for it");
    return judge(SchemaState::interrupted, half_done(row), hint_command("up", table) + " to resume it");
  }
  // Above what this binary knows, the rules are a newer one's.
  if (const auto gap = result.current + 1;
      gap <= result.latest && !found.rows.empty() && found.rows.back().number > result.current)
    return judge(
        SchemaState::drift,
        fmt::format("the history {} has version {} but not version {}", names.history, found.rows.back().number, gap),
        hint_command(fmt::format("repair --mark-applied {}", gap), table) + ", or restore the row");
  if (result.current > 0 && !found.lock)
    return judge(
        SchemaState::drift,
        fmt::format("the history says version {}, but the table {} does not exist", result.current, shown(names)),
        fmt::format("look again; restore it, or, if it is gone with its fencing tokens, drop the table {} and {}",
                    names.history, hint_command("up", table)));
  if (result.current == 0 && (found.lock || found.status))
    return judge(
        SchemaState::drift,
        fmt::format("{} exists, but no history tells its version",
                    found.lock ? "the table " + shown(names) : "the view " + names.status()),
        found.lock
            ? hint_command(fmt::format("baseline --at {}", result.latest), table) +
                  " to adopt it if dlock made it; if it belongs to another program, name another table with --table"
            : "drop it, and " + hint_command("up", table));
  if (result.current < result.latest) {
    const auto pending = result.latest - result.current;
    return judge(SchemaState::pending,
                 found.lock ? fmt::format("the table {} is at version {}, and dlock {} needs version {}", shown(names),
                                          result.current, client, result.latest)
                            : fmt::format("the table {} does not exist ({} pending)", shown(names),
                                          pending == 1 ? "1 version is" : fmt::format("{} versions are", pending)),
                 hint_command("up", table));
  }
  if (result.current > result.latest) {
    const auto* row = found.row(result.current);
    result.message = fmt::format(
        "the table {} is at version {}, newer than the {} this dlock knows, and says that it works "
        "with dlock {} and newer",
        shown(names), result.current, result.latest, row->min_client);
    return result;
  }
  result.message = fmt::format("the table {} is at version {}, the latest", shown(names), result.current);
  return result;
}

void check_compatible(dialects::Connection& connection, const dialects::Dialect& dialect,
                      const dialects::TableNames& names, Deadline deadline) {
  const auto migrations = migrations_of(dialect);
  History history(connection, dialect, migrations, names, nullptr, deadline);
  try {
    const auto table = named(names, connection.default_schema(deadline));
    const auto found = history.find();
    const auto assessment = assess(found, migrations, DLOCK_VERSION, table);
    const auto up = hint_command("up", table);
    const bool usable = assessment.current >= assessment.latest;
    switch (assessment.state) {
      case SchemaState::locked:
        // A table this library already knows stays usable while a newer version is being made.
        if (!usable) refuse(assessment.message, "try again when it is done, or " + up);
        break;
      case SchemaState::interrupted:
        if (!usable) refuse(assessment.message, assessment.hint);
        break;
      case SchemaState::pending:
        // Some catalogs show only what the role may read: where there is no table, it is asked itself.
        if (found.lock) refuse(assessment.message, assessment.hint);
        break;
      case SchemaState::drift:
        if (unrecorded(assessment, found)) break;
        refuse(assessment.message, found.lock ? hint_command("check", table) : assessment.hint);
      case SchemaState::incompatible: refuse(assessment.message, assessment.hint);
      default: break;
    }
    bool floor = false;
    try {
      floor = history.has_floor();
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::schema) throw;
      if (!found.lock) refuse(fmt::format("the table {} does not exist", shown(names)), up);
      refuse(fmt::format("the table {} is not the one dlock {} works with: {}", shown(names), DLOCK_VERSION,
                         failure.what()),
             hint_command("check", table));
    }
    if (!floor)
      refuse(fmt::format("the floor row of the table {} is missing", shown(names)), hint_command("repair", table));
    if (!history.has_identity())
      refuse(fmt::format("the floor row of the table {} does not say which installation it is", shown(names)),
             hint_command("repair", table));
  } catch (const Failure& failure) {
    history.add_right(failure, "runtime");
    throw;
  }
}

}  // namespace dlock::migrate
