// How statements run on SQLite: to the end, reset always, waiting for the file until the deadline; how often it is
// looked whether the file was moved, when WAL mode is set, and what of its set-up is weak.
#include "connection.hpp"

#include "faults.hpp"
#include "opening.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <stdexcept>

namespace dlock::dialects::sqlite {
namespace {

// To look whether a file is where it was costs a tenth of a commit in memory. It may be moved right after a look, too.
constexpr BootClock::duration between_looks = std::chrono::milliseconds{1};

}  // namespace

FileConnection::FileConnection(const File& file, bool create, Deadline deadline)
    : file_(file), patience_(deadline), db_(open_file(file_, create, patience_)) {}

void FileConnection::fail(int code) {
  auto failure = failure_of(db_.get(), code, file_.path);
  // A file that could not be written when it was opened stays so for this connection, whatever is permitted later.
  if (failure.cause() == Cause::disconnected || failure.cause() == Cause::timed_out ||
      failure.cause() == Cause::permission)
    usable_ = false;
  throw failure;
}

void FileConnection::interrupt() noexcept {
  patience_.lose();  // SQLite does not interrupt a wait for the file by itself
  sqlite3_interrupt(db_.get());
}

bool FileConnection::in_transaction() const noexcept { return sqlite3_get_autocommit(db_.get()) == 0; }

void FileConnection::begin(Deadline deadline) {
  patience_.until(deadline);
  const auto now = BootClock::now();
  if (now < next_look_ || in_transaction()) return;
  // A file that was removed or replaced can still be written through this connection, where nobody will ever look.
  int moved = 0;
  sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) {
    next_look_ = now + between_looks;
    return;
  }
  usable_ = false;
  throw Failure(Cause::disconnected,
                fmt::format("SQLite, {}: the file was moved, replaced or removed since it was opened", file_.path));
}

// Only who writes changes the file's mode: looking at a file of somebody else must leave it as it is.
WriteQueue::Turn FileConnection::turn_to_write() {
  if (file_.read_only)
    throw Failure(Cause::permission,
                  fmt::format("SQLite, {}: the URL says mode=ro, so nothing can be written", file_.path));
  if (in_transaction()) return {};
  if (!write_queue_) write_queue_ = WriteQueue::of(file_.path);
  WriteQueue::Turn turn(*write_queue_, patience_);
  if (!wal_made_ && sqlite3_db_readonly(db_.get(), "main") == 0) {
    make_wal(db_.get(), file_, patience_);
    wal_made_ = true;
  }
  return turn;
}

Prepared FileConnection::prepare(std::string_view sql, unsigned flags, std::string_view* rest) {
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()), flags, &statement, &tail);
  if (code != SQLITE_OK) fail(code);
  if (rest != nullptr) *rest = sql.substr(static_cast<std::size_t>(tail - sql.data()));
  return Prepared(statement);
}

sqlite3_stmt* FileConnection::prepared(const Statement& statement) {
  if (const auto* known = prepared_.find(statement)) return known->get();
  return prepared_.add(statement, prepare(statement.sql, SQLITE_PREPARE_PERSISTENT, nullptr)).get();
}

void FileConnection::bind(sqlite3_stmt* to, std::span<const std::size_t> markers, const Statement& statement,
                          std::span<const Argument> arguments) {
  if (arguments.size() != statement.arguments.size())
    throw std::logic_error("statement " + statement.name + " was given another number of arguments than it takes");
  int at = 0;
  for (const auto marker : markers) {
    ++at;
    const auto& argument = arguments[marker];
    int code = SQLITE_OK;
    if (const auto* text = std::get_if<std::string_view>(&argument))
      code = sqlite3_bind_text64(to, at, text->data() == nullptr ? "" : text->data(), text->size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
    else if (const auto* number = std::get_if<std::int64_t>(&argument)) code = sqlite3_bind_int64(to, at, *number);
    else code = sqlite3_bind_null(to, at);
    if (code != SQLITE_OK) fail(code);
  }
}

void FileConnection::read_row(sqlite3_stmt* statement) {
  const int columns = sqlite3_column_count(statement);
  for (int column = 0; column < columns; ++column) {
    Field& field = answer_.next();
    switch (sqlite3_column_type(statement, column)) {
      case SQLITE_NULL: field = nullptr; break;
      case SQLITE_INTEGER: field = static_cast<std::int64_t>(sqlite3_column_int64(statement, column)); break;
      default: {
        const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));  // null if it is empty
        const std::string_view view(text == nullptr ? "" : text,
                                    static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
        if (auto* old = std::get_if<std::string>(&field)) old->assign(view);
        else field.emplace<std::string>(view);
      }
    }
  }
}

void FileConnection::step_through(sqlite3_stmt* statement) {
  const int before = sqlite3_total_changes(db_.get());
  int code = SQLITE_OK;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) read_row(statement);
  if (code != SQLITE_DONE) fail(code);
  // Only of this statement, and none that a trigger has changed.
  if (sqlite3_total_changes(db_.get()) != before) answer_.affected += sqlite3_changes(db_.get());
}

const Answer& FileConnection::run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) {
  begin(deadline);
  if (statement.hinted("packet")) {
    run_packet(statement, arguments, std::max<std::size_t>(arguments.size(), 1));
    return answer_;
  }
  auto* const ready = prepared(statement);
  WriteQueue::Turn turn;
  if (sqlite3_stmt_readonly(ready) == 0) turn = turn_to_write();
  answer_.reset(static_cast<std::size_t>(sqlite3_column_count(ready)));
  const StatementUse use(ready);
  bind(ready, statement.markers, statement, arguments);
  step_through(ready);
  return answer_;
}

// Several statements that write, in one transaction, for each row; the answer is of the last of them.
void FileConnection::run_packet(const Statement& statement, std::span<const Argument> rows, std::size_t columns) {
  const auto turn = turn_to_write();
  const bool own = !in_transaction();
  if (own) control(begin_, "BEGIN IMMEDIATE");
  try {
    const bool many = rows.size() > columns;
    Answer whole;
    for (std::size_t at = 0; at < rows.size(); at += columns) {
      run_pieces(statement, rows.subspan(at, columns));
      if (many) whole.add(answer_);
    }
    if (many) answer_ = std::move(whole);
    if (own) control(commit_, "COMMIT");
  } catch (...) {
    if (own) roll_back();
    throw;
  }
}

void FileConnection::run_pieces(const Statement& statement, std::span<const Argument> arguments) {
  const std::span<const std::size_t> markers = statement.markers;
  for (const auto& piece : pieces(statement)) {
    auto* const ready = piece.prepared.get();
    answer_.reset(static_cast<std::size_t>(sqlite3_column_count(ready)));
    const StatementUse use(ready);
    bind(ready, markers.subspan(piece.first_marker, piece.markers), statement, arguments);
    step_through(ready);
  }
}

const std::vector<FileConnection::Piece>& FileConnection::pieces(const Statement& statement) {
  if (const auto* known = packets_.find(statement)) return *known;
  std::vector<Piece> pieces;
  std::size_t markers = 0;
  for (std::string_view sql = statement.sql; !sql.empty();) {
    auto ready = prepare(sql, SQLITE_PREPARE_PERSISTENT, &sql);
    if (!ready) break;  // blanks at the end
    const auto count = static_cast<std::size_t>(sqlite3_bind_parameter_count(ready.get()));
    pieces.push_back({std::move(ready), markers, count});
    markers += count;
  }
  return packets_.add(statement, std::move(pieces));
}

const Answer& FileConnection::run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                                       Deadline deadline) {
  if (rows.size() == columns) return run(statement, rows, deadline);
  begin(deadline);
  if (statement.hinted("packet")) {
    run_packet(statement, rows, columns);
    return answer_;
  }
  auto* const ready = prepared(statement);
  WriteQueue::Turn turn;
  if (sqlite3_stmt_readonly(ready) == 0) turn = turn_to_write();
  answer_.reset(static_cast<std::size_t>(sqlite3_column_count(ready)));
  if (rows.empty()) return answer_;
  const bool own = !in_transaction() && sqlite3_stmt_readonly(ready) == 0;
  if (own) control(begin_, "BEGIN IMMEDIATE");
  try {
    for (std::size_t at = 0; at < rows.size(); at += columns) {
      const StatementUse use(ready);
      bind(ready, statement.markers, statement, rows.subspan(at, columns));
      step_through(ready);
    }
    if (own) control(commit_, "COMMIT");
  } catch (...) {
    if (own) roll_back();
    throw;
  }
  return answer_;
}

void FileConnection::control(Prepared& statement, const char* sql) {
  if (!statement) statement = prepare(sql, SQLITE_PREPARE_PERSISTENT, nullptr);
  const StatementUse use(statement.get());
  if (const int code = sqlite3_step(statement.get()); code != SQLITE_DONE) fail(code);
}

void FileConnection::roll_back() noexcept {
  if (!in_transaction()) return;  // some failures roll back by themselves
  try {
    control(rollback_, "ROLLBACK");
  } catch (...) { usable_ = false; }
}

void FileConnection::script(std::string_view sql, Deadline deadline) {
  begin(deadline);
  while (!sql.empty()) {
    std::string_view rest;
    WriteQueue::Turn turn;
    const auto statement = prepare(sql, 0, &rest);
    sql = rest;
    if (!statement) continue;  // blanks or a comment
    if (sqlite3_stmt_readonly(statement.get()) == 0) turn = turn_to_write();
    int code = SQLITE_OK;
    while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {}
    if (code != SQLITE_DONE) fail(code);
  }
}

std::string FileConnection::default_schema(Deadline) { return "main"; }

std::vector<std::string> FileConnection::weaknesses(Deadline deadline) {
  begin(deadline);
  const auto mode = [&] { return look_up(db_.get(), "PRAGMA journal_mode", file_.path); };
  try {
    wal_made_ = wal_made_ || mode() == "wal";  // who only looks waits for no writer
    if (!file_.read_only && !wal_made_) static_cast<void>(turn_to_write());
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::locked) throw;
  }
  std::vector<std::string> found;
  if (file_.synchronous == "OFF" || file_.synchronous == "NORMAL")
    found.push_back(
        fmt::format("synchronous={}: grants of the last moments before a power failure can be forgotten and "
                    "granted a second time, under the same token; the default, full, prevents that",
                    file_.synchronous));
  if (const auto now = mode(); now != "wal")
    found.push_back(
        fmt::format("journal_mode={}, and WAL could not be set: readers and the writer stop each other, so that "
                    "renewals can come too late",
                    now));
  if (const auto kind = network_file_system(file_.path); !kind.empty())
    found.push_back(
        fmt::format("{} is on a {} file system: where other hosts use the file too, its locks cannot be "
                    "trusted, and two can hold one lock",
                    file_.path, kind));
  return found;
}

std::string FileConnection::server() const { return fmt::format("SQLite {}", sqlite3_libversion()); }

}  // namespace dlock::dialects::sqlite
