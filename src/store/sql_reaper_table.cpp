// Which named statement answers which question of the reaper, and how its answer reads.
#include "store/sql_reaper_table.hpp"

#include "store/installation.hpp"

#include <cstdint>
#include <utility>

namespace dlock::store {
namespace {

// From the columns of the statements "idle" and "idle_row".
std::vector<Idle> idle_rows(const Answer& answer) {
  std::vector<Idle> found;
  found.reserve(answer.rows());
  for (std::size_t row = 0; row < answer.rows(); ++row)
    found.push_back({answer.text(row, 0), Token{answer.integer(row, 1)}, Duration{answer.integer(row, 2)}});
  return found;
}

// For the statement "remove_idle", three a row.
std::vector<Argument> arguments_of(std::span<const Idle> rows) {
  std::vector<Argument> arguments;
  arguments.reserve(rows.size() * 3);
  for (const auto& row : rows) {
    arguments.emplace_back(std::string_view{row.name});
    arguments.emplace_back(number(row.token));
    arguments.emplace_back(row.expires_at.count());
  }
  return arguments;
}

// From the columns of the statement "abandoned".
std::vector<Abandoned> abandoned_rows(const Answer& answer) {
  std::vector<Abandoned> found;
  found.reserve(answer.rows());
  for (std::size_t row = 0; row < answer.rows(); ++row)
    found.push_back({answer.text(row, 0), answer.text(row, 1), answer.text(row, 2), Token{answer.integer(row, 3)},
                     Duration{answer.integer(row, 4)}, static_cast<std::size_t>(answer.integer(row, 5))});
  return found;
}

// From the columns of the statements "dead_holders" and "dead_holders_of".
std::vector<DeadHolder> dead_rows(const Answer& answer) {
  std::vector<DeadHolder> found;
  found.reserve(answer.rows());
  for (std::size_t row = 0; row < answer.rows(); ++row)
    found.push_back({{answer.text(row, 0), answer.text(row, 2), answer.text(row, 3), Token{answer.integer(row, 4)},
                      Duration{answer.integer(row, 5)}, 0},
                     answer.text(row, 1),
                     answer.integer(row, 6) != 0,
                     Duration{answer.integer(row, 7)}});
  return found;
}

}  // namespace

SqlReaperTable::SqlReaperTable(const dialects::Statements& all, RemovalPace removal_pace, ReleaseNotice& notice,
                               OnConnection on_connection)
    : removal_pace_(removal_pace),
      notice_(notice),
      on_connection_(std::move(on_connection)),
      begin_reaping_(all.at("begin_reaping", {"reaper", "label", "lease", "pause"})),
      end_reaping_(all.at("end_reaping", {"reaper", "pause"})),
      abandoned_(all.at("abandoned", {"prefix", "after", "limit"})),
      settle_(all.at("settle", {"name", "token", "settler"})),
      settled_(all.at("settled", {"name", "token", "settler"})),
      floor_(all.at("floor", {})),
      raise_floor_(all.at("raise_floor", {"retention"})),
      raise_floor_to_(all.at("raise_floor_to", {"token"})),
      idle_(all.at("idle", {"prefix", "after", "floor", "retention", "limit"})),
      idle_row_(all.at("idle_row", {"name"})),
      remove_idle_(all.at("remove_idle", {"name", "token", "expires_at"})),
      dead_holders_(all.at("dead_holders", {"prefix", "after", "after_owner", "limit"})),
      dead_holders_of_(all.at("dead_holders_of", {"name", "after_owner", "limit"})),
      forget_holder_(all.at("forget_holder", {"name", "owner", "token", "expires_at"})),
      has_holder_(all.at("has_holder", {"name", "owner", "token"})),
      forget_holders_(all.at("forget_holders", {"name", "owner"})),
      history_above_(all.at("history_above", {"keep"})),
      history_count_(all.at("history_count", {"after", "last", "batch"})),
      trim_history_(all.at("history_trim", {"last", "batch"})) {}

void SqlReaperTable::ask(const dialects::Statement& statement, std::initializer_list<Argument> arguments,
                         Deadline deadline, const Read& read) const {
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline& promptly) {
    read(connection.run(statement, {arguments.begin(), arguments.size()}, promptly));
  });
}

void SqlReaperTable::scan(const dialects::Statement& statement, std::initializer_list<Argument> arguments,
                          Deadline deadline, const Read& read) const {
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline&) {
    read(connection.run(statement, {arguments.begin(), arguments.size()}, deadline));
  });
}

bool SqlReaperTable::begin_reaping(std::string_view reaper, std::string_view label, Duration lease, Duration pause,
                                   Deadline deadline) {
  bool begun = false;
  ask(begin_reaping_, {reaper, label, lease.count(), pause.count()}, deadline,
      [&](const Answer& answer) { begun = answer.affected > 0; });
  // Throws where it is no other reaper that is in the way, but nothing to have a turn on.
  if (!begun) static_cast<void>(floor(deadline));
  return begun;
}

void SqlReaperTable::end_reaping(std::string_view reaper, Duration pause, Deadline deadline) {
  ask(end_reaping_, {reaper, pause.count()}, deadline, [](const Answer&) {});
}

std::vector<Abandoned> SqlReaperTable::abandoned(const Some& some, Deadline deadline) {
  std::vector<Abandoned> found;
  scan(abandoned_, {some.prefix, some.after, static_cast<std::int64_t>(some.limit)}, deadline,
       [&](const Answer& answer) { found = abandoned_rows(answer); });
  return found;
}

bool SqlReaperTable::settle(std::string_view name, Token token, std::string_view settler, Deadline deadline) {
  bool freed = false;
  ask(settle_, {name, number(token), settler}, deadline, [&](const Answer& answer) {
    notice_.heed(answer);
    freed = answer.affected > 0;
  });
  return freed;
}

Settled SqlReaperTable::settled(std::string_view name, Token token, std::string_view settler, Deadline deadline) {
  auto settled = Settled::unclear;
  ask(settled_, {name, number(token), settler}, deadline, [&](const Answer& answer) {
    constexpr std::array answers{Settled::not_by_asker, Settled::by_asker, Settled::unclear, Settled::still_held};
    if (answer.rows() > 0) settled = answers.at(static_cast<std::size_t>(answer.integer(0, 0)));
  });
  return settled;
}

Token SqlReaperTable::floor(Deadline deadline) const {
  Token floor{};
  ask(floor_, {}, deadline, [&](const Answer& answer) { floor = floor_of(answer); });
  return floor;
}

Token SqlReaperTable::raise_floor(Duration retention, Deadline deadline) {
  scan(raise_floor_, {retention.count()}, deadline, [](const Answer&) {});
  return floor(deadline);
}

Token SqlReaperTable::raise_floor_to(Token least, Deadline deadline) {
  ask(raise_floor_to_, {number(least)}, deadline, [](const Answer&) {});
  return floor(deadline);
}

std::vector<Idle> SqlReaperTable::idle(const Some& some, Token floor, Duration retention, Deadline deadline) {
  std::vector<Idle> found;
  scan(idle_, {some.prefix, some.after, number(floor), retention.count(), static_cast<std::int64_t>(some.limit)},
       deadline, [&](const Answer& answer) { found = idle_rows(answer); });
  return found;
}

std::optional<Idle> SqlReaperTable::idle_row(std::string_view name, Deadline deadline) {
  std::vector<Idle> found;
  ask(idle_row_, {name}, deadline, [&](const Answer& answer) { found = idle_rows(answer); });
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::size_t SqlReaperTable::remove_idle(std::span<const Idle> rows, Deadline deadline) {
  std::size_t removed = 0;
  if (rows.empty()) return removed;
  const auto arguments = arguments_of(rows);
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline&) {
    removed = static_cast<std::size_t>(connection.run_rows(remove_idle_, arguments, 3, deadline).affected);
  });
  return removed;
}

std::vector<DeadHolder> SqlReaperTable::dead_holders(const Some& some, std::string_view after_owner,
                                                     Deadline deadline) {
  std::vector<DeadHolder> found;
  const auto limit = static_cast<std::int64_t>(some.limit);
  scan(dead_holders_, {some.prefix, some.after, after_owner, limit}, deadline,
       [&](const Answer& answer) { found = dead_rows(answer); });
  return found;
}

std::vector<DeadHolder> SqlReaperTable::dead_holders_of(std::string_view name, std::string_view after_owner,
                                                        std::size_t limit, Deadline deadline) {
  std::vector<DeadHolder> found;
  scan(dead_holders_of_, {name, after_owner, static_cast<std::int64_t>(limit)}, deadline,
       [&](const Answer& answer) { found = dead_rows(answer); });
  return found;
}

bool SqlReaperTable::forget_holder(const DeadHolder& dead, Deadline deadline) {
  bool removed = false;
  ask(forget_holder_, {dead.lease.name, dead.owner, number(dead.lease.token), dead.expires_at.count()}, deadline,
      [&](const Answer& answer) { removed = answer.affected > 0; });
  return removed;
}

bool SqlReaperTable::has_holder(const DeadHolder& dead, Deadline deadline) {
  bool there = false;
  ask(has_holder_, {dead.lease.name, dead.owner, number(dead.lease.token)}, deadline,
      [&](const Answer& answer) { there = answer.rows() > 0; });
  return there;
}

void SqlReaperTable::forget_holders(std::span<const DeadHolder> dead, Deadline deadline) {
  std::vector<Argument> rows;
  for (const auto& one : dead) rows.insert(rows.end(), {one.lease.name, one.owner});
  if (rows.empty()) return;
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline&) {
    connection.run_rows(forget_holders_, rows, 2, deadline);
  });
}

std::optional<std::int64_t> SqlReaperTable::last_to_trim(std::size_t keep, Deadline deadline) const {
  std::optional<std::int64_t> last;
  scan(history_above_, {static_cast<std::int64_t>(keep)}, deadline, [&](const Answer& answer) {
    if (answer.rows() > 0) last = answer.integer(0, 0);
  });
  return last;
}

HistoryPiece SqlReaperTable::count_history(std::size_t keep, std::int64_t after, std::size_t batch, Deadline deadline) {
  HistoryPiece piece;
  if (const auto last = last_to_trim(keep, deadline))
    scan(history_count_, {after, *last, static_cast<std::int64_t>(batch)}, deadline, [&](const Answer& answer) {
      piece = {static_cast<std::size_t>(answer.integer(0, 0)), answer.integer(0, 1)};
    });
  return piece;
}

std::size_t SqlReaperTable::trim_history(std::size_t keep, std::size_t batch, Deadline deadline) {
  const auto last = last_to_trim(keep, deadline);
  if (!last) return 0;
  std::size_t removed = 0;
  scan(trim_history_, {*last, static_cast<std::int64_t>(batch)}, deadline,
       [&](const Answer& answer) { removed = static_cast<std::size_t>(answer.affected); });
  return removed;
}

}  // namespace dlock::store
