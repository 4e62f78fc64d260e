// This file knows a caller's transaction on a SQLite database.
#pragma once

#include "dialects/guest.hpp"
#include "types/row.hpp"

#include <string>

struct sqlite3;

namespace dlock::dialects::DLOCK_DIALECT {

class TransactionGuest final : public Guest {
 public:
  explicit TransactionGuest(sqlite3* database);
  // A runner of the caller's: it does not tell the state of its connection.
  explicit TransactionGuest(Send send) : send_(std::move(send)) {}

  void check() override;
  TextRow run(std::string_view sql) override { return send_(sql); }
  TextRow attempt(std::string_view sql) override;
  bool fence(std::string_view sql, Duration wait) override;
  bool blind_to_new_rows() override { return false; }  // a snapshot that has grown old cannot write at all
  bool writes_alone() override;
  void bound_idle(Duration) override {}  // a file has no server that could notice
  void doom() noexcept override;
  void begin(Duration wait) override;
  void commit() override { run("COMMIT"); }
  void roll_back() noexcept override;

 private:
  // As run(), but waits at most `wait` for the one writer of the file.
  TextRow run_waiting(std::string_view sql, Duration wait);

  sqlite3* database_ = nullptr;  // null with a runner
  Send send_;
};

// A text as a blob in hexadecimal digits.
void append_literal(std::string& sql, const Argument& argument);

}  // namespace dlock::dialects::DLOCK_DIALECT
