// A caller's transaction on a MySQL or MariaDB server.
#pragma once

#include "dialects/caller_connection.hpp"

#include <mysql.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::dialects::mysql {

// Which server this is, as the statement "installation" says it too. UUID_SHORT() begins with the second it was started
// in. No table is read: at REPEATABLE READ the transaction has no snapshot yet, which would be too old for a lock that
// is waited for.
inline constexpr std::string_view server_place = "CONCAT_WS('/', @@hostname, @@port, @@datadir, UUID_SHORT() >> 24)";

// How long a transaction may be idle that has written; and by whichever setting. The caller may be bound by less
// specific ones, which that one would replace.
inline constexpr const char* idle_settings =
    "@@idle_write_transaction_timeout, COALESCE(NULLIF(@@idle_write_transaction_timeout, 0), "
    "NULLIF(@@idle_transaction_timeout, 0), @@wait_timeout)";
inline constexpr const char* too_little =
    "the connection that was handed over answers less than was asked (sql_select_limit, or a runner that cuts rows)";

inline std::int64_t number_in(const std::optional<std::string>& text) {
  std::int64_t number = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

class TransactionConnection final : public CallerConnection {
 public:
  TransactionConnection(MYSQL* connection, const QuotedTable& table);
  // A runner of the caller's: it tells neither the state of its connection nor the number of an error.
  TransactionConnection(Send send, QuotedTable table) : CallerConnection(std::move(send)), table_(std::move(table)) {}

  void check() override;
  TextRow attempt(std::string_view sql, std::optional<Duration>) override;
  bool fence(std::string_view sql, Duration wait, std::optional<Duration> idle_bound) override;
  bool catch_up(std::string_view position, Duration wait) override;
  std::optional<bool> is_at(std::string_view place) override;
  bool counts_by_own_clock() override { return true; }
  bool asks_by_itself() const override { return false; }
  std::optional<TextRow> look(std::string_view sql) override;
  bool lacks_table() noexcept override;
  // From REPEATABLE READ on what was examined stays locked; which isolation a transaction has nobody is told.
  bool tries_once() override { return true; }
  std::string where() noexcept override;
  Duration keep_alive() override;
  void doom(const EndSession& end_session) noexcept override;
  void spoil(const EndSession& end_session) noexcept override;
  void begin(Duration wait) override;
  void commit() override;
  Undone undo() noexcept override;
  bool roll_back() noexcept override;

 private:
  // Whether the runner's session is in a transaction, as far as a statement that changes nothing can tell.
  bool proves_transaction();
  TextRow asked_first(const std::string& sql);
  bool is_open_behind_failure() noexcept;
  void check_begun();
  // `behind`, `says`: what the session has just said of its clock.
  void check_clock(const std::string& behind, const std::string& says);
  bool keeps_its_kind();
  bool answers() noexcept;
  bool is_released_after(const std::exception_ptr& first);
  bool leaves_something();
  // Whether the statement before has failed because the server has undone the whole transaction. Says so until the next
  // one.
  bool was_undone();
  TextRow run_waiting(std::string_view sql, Duration wait);
  bool is_mariadb();
  void bound_idle(Duration bound);
  std::string idle_as_before() const;
  void end_with(std::string_view how);

  MYSQL* connection_ = nullptr;  // null with a runner
  QuotedTable table_;
  std::optional<bool> mariadb_;
  std::optional<std::string> place_;
  std::string session_{};                    // with a runner: which session of which server this is
  TextRow idle_settings_{};                  // of MariaDB, where they have just been read
  std::optional<std::int64_t> idle_before_;  // the session's setting, to be restored
  std::vector<std::int64_t> idle_bounds_;    // what it was set to instead
};

}  // namespace dlock::dialects::mysql
