// Reads the history of the locks, and whether there is one.
#include "store/lock_history.hpp"

#include "store/holder_rows.hpp"
#include "types/failure.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

namespace dlock::store {
namespace {

Outcome outcome_of(std::string_view word) {
  for (const Outcome outcome : {Outcome::released, Outcome::expired, Outcome::forced, Outcome::taken_over})
    if (to_string(outcome) == word) return outcome;
  throw Failure(Cause::schema, fmt::format("a history tells of the outcome {}, which this dlock does not know", word));
}

std::chrono::sys_time<Duration> time_of(std::int64_t microseconds) {
  return std::chrono::sys_time<Duration>{Duration{microseconds}};
}

HistoryEntry entry_of(const Answer& answer, std::size_t row) {
  return {mode_of(answer.text(row, 0)),
          Token{answer.integer(row, 1)},
          answer.text(row, 2),
          answer.text(row, 3),
          answer.text(row, 4),
          time_of(answer.integer(row, 5)),
          time_of(answer.integer(row, 6)),
          outcome_of(answer.text(row, 7)),
          answer.text(row, 8)};
}

[[noreturn]] void refuse(const migrate::Named& table, std::string_view what) {
  throw Failure(Cause::schema, fmt::format("{}; {}", what, migrate::hint_command("history --apply", table)));
}

}  // namespace

LockHistory::LockHistory(const dialects::Statements& all, migrate::Named table, OnConnection on_connection)
    : kept_(all.at("history_kept", {"schema", "lock", "holder", "lock_history", "family"})),
      of_(all.at("history_of", {"name", "limit"})),
      table_(std::move(table)),
      on_connection_(std::move(on_connection)) {}

void LockHistory::ask(const dialects::Statement& statement, std::span<const Argument> arguments, Deadline deadline,
                      const Read& read) const {
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline&) {
    read(connection.run(statement, arguments, deadline));
  });
}

bool LockHistory::kept(Deadline deadline) const {
  const auto holder = table_.names.holder(), history = table_.names.lock_history(), family = table_.names.recorders();
  bool kept = false;
  const std::array<Argument, 5> arguments{std::string_view{table_.names.schema}, std::string_view{table_.names.lock},
                                          std::string_view{holder}, std::string_view{history},
                                          std::string_view{family}};
  ask(kept_, arguments, deadline, [&](const Answer& answer) { kept = answer.integer(0, 0) != 0; });
  return kept;
}

void LockHistory::check(Deadline deadline) const {
  if (!kept(deadline)) refuse(table_, fmt::format("no history is kept of the table {}", migrate::shown(table_.names)));
}

std::vector<HistoryEntry> LockHistory::of(std::string_view name, std::size_t limit, Deadline deadline) const {
  std::vector<HistoryEntry> entries;
  const std::array<Argument, 2> arguments{name, static_cast<std::int64_t>(limit)};
  try {
    ask(of_, arguments, deadline, [&](const Answer& answer) {
      entries.reserve(answer.rows());
      for (std::size_t row = 0; row < answer.rows(); ++row) entries.push_back(entry_of(answer, row));
    });
  } catch (const Failure& failure) {
    if (failure.cause() == Cause::schema) check(deadline);
    throw;
  }
  return entries;
}

}  // namespace dlock::store
