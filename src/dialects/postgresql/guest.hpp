// This file knows a caller's transaction on a PostgreSQL server.
#pragma once

#include "dialects/guest.hpp"
#include "types/row.hpp"

#include <libpq-fe.h>

#include <string>

namespace dlock::dialects::DLOCK_DIALECT {

class TransactionGuest final : public Guest {
 public:
  explicit TransactionGuest(PGconn* connection);
  // A runner of the caller's: it tells neither the state of its connection nor the code of an error.
  explicit TransactionGuest(Send send) : send_(std::move(send)) {}

  void check() override;
  TextRow run(std::string_view sql) override { return send_(sql); }
  TextRow attempt(std::string_view sql) override;
  bool fence(std::string_view sql, Duration wait) override;
  bool blind_to_new_rows() override;
  bool writes_alone() override { return false; }
  void bound_idle(Duration bound) override;
  void doom() noexcept override {}  // the failed statement has aborted the transaction
  void begin(Duration wait) override;
  void commit() override;
  void roll_back() noexcept override;

 private:
  std::string one(std::string_view sql);

  PGconn* connection_ = nullptr;  // null with a runner
  Send send_;
};

// A text as bytes in hexadecimal digits: whatever the client's encoding and standard_conforming_strings say.
void append_literal(std::string& sql, const Argument& argument);

}  // namespace dlock::dialects::DLOCK_DIALECT
