// A caller's transaction on a SQLite database.
#pragma once

#include "dialects/caller_connection.hpp"
#include "types/row.hpp"

#include <string>

struct sqlite3;

namespace dlock::dialects::sqlite {

class TransactionConnection final : public CallerConnection {
 public:
  TransactionConnection(sqlite3* database, const QuotedTable& table);
  // A runner of the caller's: it does not tell the state of its connection.
  TransactionConnection(Send send, QuotedTable table) : CallerConnection(std::move(send)), table_(std::move(table)) {}

  void check() override;
  // A file has no server that could notice who is idle.
  TextRow attempt(std::string_view sql, std::optional<Duration>) override;
  bool fence(std::string_view sql, Duration wait, std::optional<Duration>) override;
  std::optional<bool> is_at(std::string_view place) override;
  bool asks_by_itself() const override { return true; }
  // What is read decides what a deferred transaction sees, and whether it can still write.
  std::optional<TextRow> look(std::string_view) override { return std::nullopt; }
  bool lacks_table() noexcept override;
  std::string where() noexcept override;
  bool writes_alone() override;
  void doom(const EndSession& end_session) noexcept override;
  void spoil(const EndSession& end_session) noexcept override;
  void begin(Duration wait) override;
  void commit() override;
  Undone undo() noexcept override;
  bool roll_back() noexcept override;

 private:
  bool in_transaction();
  // As run(), but waits at most `wait` for the one writer of the file.
  TextRow run_waiting(std::string_view sql, Duration wait);

  sqlite3* database_ = nullptr;  // null with a runner
  QuotedTable table_;
};

// A text as a blob in hexadecimal digits.
void append_literal(std::string& sql, const Argument& argument);

}  // namespace dlock::dialects::sqlite
