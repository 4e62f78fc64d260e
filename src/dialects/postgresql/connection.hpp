// This file knows one connection to a PostgreSQL server.
#pragma once

#include "dialects/dialect.hpp"
#include "server.hpp"

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace dlock::dialects::DLOCK_DIALECT {

class ServerConnection final : public Connection {
 public:
  // Connects and makes the session's settings. Throws Failure.
  ServerConnection(const Server& server, bool prepared_statements, Deadline deadline);

  const Answer& run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) override;
  const Answer& run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                         Deadline deadline) override;
  void script(std::string_view sql, Deadline deadline) override;
  std::string default_schema(Deadline deadline) override;
  std::vector<std::string> weaknesses(Deadline deadline) override;
  bool usable() const noexcept override { return usable_; }
  std::string server() const override;

 private:
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  using Result = std::unique_ptr<PGresult, Clear>;

  void connect(const Server& server, Deadline deadline);
  void make_settings(Deadline deadline);
  // Waits for the socket; false: the deadline has passed.
  bool wait(short events, Deadline deadline);
  // Sends what is buffered and reads every result to the end; nothing is believed unless all of them are good.
  void finish_request(Deadline deadline);
  void read(PGresult* result);
  void execute(const Statement& statement, Deadline deadline);
  const std::string& prepared(const Statement& statement, Deadline deadline);
  [[noreturn]] void broken(bool may_have_run);
  std::string without_password(std::string text) const;

  const std::string user_, password_;
  const bool prepare_;
  std::unique_ptr<PGconn, Finish> connection_;
  std::string prefix_;
  std::unordered_map<std::string, std::string> prepared_;  // statement's text to its name on this connection
  std::vector<std::string> texts_;                         // arguments as text, kept to be used again
  std::vector<const char*> values_;
  Answer answer_;
  bool usable_ = true;
};

}  // namespace dlock::dialects::DLOCK_DIALECT
