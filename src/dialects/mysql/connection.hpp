// One connection to a MySQL or MariaDB server.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/prepared_texts.hpp"
#include "server.hpp"

#include <mysql.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::dialects::mysql {

struct SessionUse {
  bool prepared_statements = true, waits_for_locks = false;  // as ConnectOptions has them
};

class ServerConnection final : public Connection {
 public:
  // Connects and makes the session's settings. Throws Failure.
  // Without prepared statements (behind a transaction pooler) everything is sent as text, and no setting is made for
  // the session: what a statement must have it brings along. Unless it is to wait for locks as the server is set up to,
  // as who migrates does: what its statements mean is set all the same.
  ServerConnection(const Server& server, const SessionUse& use, Deadline deadline);
  ~ServerConnection() override { close(); }
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  const Answer& run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) override;
  const Answer& run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                         Deadline deadline) override;
  std::optional<AnswerOfCommit> run_in_one_commit(const StatementOfRows& first, const StatementOfRows& second,
                                                  Deadline deadline) override;
  bool post(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) override;
  void script(std::string_view sql, Deadline deadline) override;
  std::string default_schema(Deadline deadline) override;
  std::vector<std::string> weaknesses(Deadline deadline) override;
  std::string position(Deadline deadline) override;
  // MySQL's least is a second, and it is late with it.
  Duration lock_wait() const noexcept override { return mariadb_ ? Duration{} : std::chrono::seconds{2}; }
  void end_session(std::string_view session, Deadline deadline) override;
  bool usable() const noexcept override { return usable_; }
  bool at_rest() const noexcept override { return !unanswered_; }
  bool drain(const Deadline& deadline) noexcept override;
  std::string server() const override;

  // For what only this dialect does: a text that was written here, and the answer of its last result with rows.
  const Answer& ask(const std::string& sql, Deadline deadline);
  MYSQL* native() const noexcept { return connection_; }
  // Several servers take writes, and what one has acknowledged reaches the others a little later.
  bool in_cluster() const noexcept { return cluster_ != Cluster::none; }

 private:
  enum class Cluster { none, galera, group };
  class Caught;  // up with the cluster, for as long as it lives
  std::string_view catching_up() const noexcept;

  struct Prepared {
    MYSQL_STMT* handle = nullptr;
    std::vector<MYSQL_BIND> binds;
    std::vector<std::int64_t> numbers;
    std::vector<unsigned long> lengths;
    // Where a row of the answer goes.
    struct Cell {
      std::int64_t number = 0;
      unsigned long length = 0;
      my_bool null = 0, error = 0;
    };
    std::vector<Cell> cells{};
    std::vector<MYSQL_BIND> columns{};
  };

  void choose_options(const Server& server);
  void heed_greeting(const Server& server, const Deadline& deadline);
  std::string host_name(const Server& server) const;
  std::vector<std::string> hosts(const Server& server, const Deadline& deadline) const;
  void open(const Server& server, Deadline deadline);
  void open_at(const Server& server, const std::string& host, const Deadline& deadline);
  void make_settings(Deadline deadline);
  void make_settings_to_wait(Deadline deadline);
  void make_settings(const std::string& sql, Deadline deadline);
  void check_settings(Deadline deadline);
  void note_variables();
  bool loses_in_failover(Deadline deadline);
  void close() noexcept;
  // Before a request: nothing is left of an earlier one.
  void check_sendable(Deadline deadline);
  void catch_up_on_answers(const Deadline& deadline);
  // False: there is no answer in time.
  bool execute(MYSQL_STMT* handle, int status, int& result, const Deadline& deadline);
  // Lets one of the library's suspended calls go on until it is done. `status` is what its start answered; `runs`: what
  // it sends is done by the server, whether or not there is an answer.
  template <class Continue>
  void finish(int status, Deadline deadline, bool runs, Continue proceed);
  int wait(int status, Deadline deadline);
  [[noreturn]] void fail(unsigned number, const std::string& text, bool sent);
  [[noreturn]] void fail(bool sent);
  [[noreturn]] void fail(MYSQL_STMT* statement, bool sent);
  Prepared& prepared(const Statement& statement, Deadline deadline);
  void run_prepared(const Statement& statement, std::span<const Argument> arguments, Deadline deadline);
  // What is sent with a statement whose insert id is its answer, where the next one may go to another session.
  static constexpr const char* insert_id_too = ";SELECT LAST_INSERT_ID()";
  void tell_insert_id(bool wanted, Deadline deadline);
  void run_once(const Statement& statement, std::span<const Argument> arguments, Deadline deadline);
  Answer run_rows_once(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                       Deadline deadline);
  void bind(Prepared& prepared, const Statement& statement, std::span<const Argument> arguments);
  void fetch(Prepared& prepared, Deadline deadline);
  // Sends a text of one or more statements; answer_ is the last result with rows, those of as many columns right before
  // it included, and all rows changed.
  void query(const std::string& sql, Deadline deadline);
  // Goes on to the next result of a text, as mysql_next_result().
  int next_result(const Deadline& deadline);
  bool rest_is_dropped(const Deadline& deadline) noexcept;
  void run_packet(const std::string& sql, Deadline deadline);
  void run_text(const std::string& sql, Deadline deadline);
  void read(MYSQL_RES* result);
  // What else the text of a statement must begin with where the session has no settings of its own.
  std::string with_settings(const Statement& statement, std::string sql) const;
  // The same. `skips`: with SKIP LOCKED in it, which MariaDB cannot do in a session that never waits for a lock: it
  // gives error 1180 and undoes the transaction. Else it fails at once where something is locked, and has done nothing.
  // `before`: something of the same request has been committed, so that a failure leaves that done.
  void query_locking(std::string sql, bool skips, bool before, Deadline deadline);

  static constexpr std::string_view sql_mode = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO";

  const bool prepare_;
  const Server server_;
  MYSQL* connection_ = nullptr;
  bool mariadb_ = false, encrypted_ = false;
  std::size_t largest_packet_ = 1'000'000;  // the server's limit, or the smallest that was ever a default
  PreparedTexts<Prepared> prepared_;
  Answer answer_;
  std::uint64_t insert_id_ = 0;          // of the last statement that answered without rows
  std::vector<std::int64_t> changed_{};  // rows, by each of its statements that answer without some
  bool committed_ = false;               // something that the last text has written, also where it failed after that
  Cluster cluster_ = Cluster::none;
  std::string_view first_{};  // what the text of a statement that is not prepared begins with, and a semicolon
  // The statement of a post() whose answer is awaited.
  struct Unanswered {
    MYSQL_STMT* handle;
    int status;  // what the client library waits for
    Instant since;
  };
  std::optional<Unanswered> unanswered_{};
  bool usable_ = true;
};

template <class Continue>
void ServerConnection::finish(int status, Deadline deadline, bool runs, Continue proceed) {
  while (status != 0) {
    const int happened = wait(status, deadline);
    if (happened < 0) {
      usable_ = false;
      throw Failure(Cause::timed_out, "MySQL: no answer in time", {}, runs);
    }
    status = proceed(happened);
  }
}

}  // namespace dlock::dialects::mysql
