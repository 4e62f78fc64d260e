// This file knows a caller's transaction on a MySQL or MariaDB server.
#pragma once

#include "dialects/guest.hpp"

#include <mysql.h>

#include <optional>
#include <string>

namespace dlock::dialects::DLOCK_DIALECT {

class TransactionGuest final : public Guest {
 public:
  explicit TransactionGuest(MYSQL* connection);
  // A runner of the caller's: it tells neither the state of its connection nor the number of an error.
  explicit TransactionGuest(Send send) : send_(std::move(send)) {}

  void check() override;
  TextRow run(std::string_view sql) override { return send_(sql); }
  TextRow attempt(std::string_view sql) override;
  bool fence(std::string_view sql, Duration wait) override;
  bool blind_to_new_rows() override { return false; }  // reads that lock see what is committed
  bool writes_alone() override { return false; }
  void bound_idle(Duration bound) override;
  void doom() noexcept override;
  void begin(Duration wait) override;
  void commit() override;
  void roll_back() noexcept override;

 private:
  std::string one(std::string_view sql);
  bool is_mariadb();
  void restore_idle_bound() noexcept;

  MYSQL* connection_ = nullptr;  // null with a runner
  Send send_;
  std::optional<bool> mariadb_;
  bool own_ = false;                // the transaction was begun here, and ends here
  std::optional<std::string> idle_before_;  // the session's setting, to be restored
};

}  // namespace dlock::dialects::DLOCK_DIALECT
