// A caller's transaction on a PostgreSQL server.
#pragma once

#include "dialects/caller_connection.hpp"

#include <libpq-fe.h>

#include <initializer_list>
#include <string>

namespace dlock::dialects::postgresql {

class TransactionConnection final : public CallerConnection {
 public:
  TransactionConnection(PGconn* connection, const QuotedTable& table);
  // A runner of the caller's: it tells neither the state of its connection nor the code of an error.
  TransactionConnection(Send send, const QuotedTable& table);

  void check() override;
  TextRow attempt(std::string_view sql, std::optional<Duration> idle_bound) override;
  TextRow attempt_to_read(std::string_view sql) override;
  bool fence(std::string_view sql, Duration wait, std::optional<Duration> idle_bound) override;
  std::optional<bool> is_at(std::string_view) override { return std::nullopt; }
  bool asks_by_itself() const override { return true; }
  std::optional<TextRow> look(std::string_view sql) override;
  bool lacks_table() noexcept override;
  std::string where() noexcept override;
  bool blind_to_new_rows() override;
  // What was locked is let go of with the savepoint, the snapshot is not.
  bool tries_once() override { return blind_to_new_rows(); }
  Duration keep_alive() override;
  void doom(const EndSession& end_session) noexcept override;
  void spoil(const EndSession& end_session) noexcept override;
  void begin(Duration wait) override;
  void commit() override;
  Undone undo() noexcept override;
  bool roll_back() noexcept override;

 private:
  // Runs the statements behind a savepoint, and goes back to it unless the last one has answered a row that is to be
  // kept locked.
  TextRow in_savepoint(std::initializer_list<std::string_view> first, std::string_view sql, bool keep);
  void check_runner();
  std::optional<bool> is_open_by_time();
  bool replaced() noexcept;
  std::string lock_timeout();

  PGconn* connection_ = nullptr;  // null with a runner
  const std::string table_;       // its name as a literal
  const std::string lock_table_;  // the statement that says whether it can be written at once
  const std::string read_lock_;   // likewise whether it can be read
  std::string session_;           // with a runner: which session of the server this is
  std::string database_;          // with a runner: its name, once it is known
};

}  // namespace dlock::dialects::postgresql
