// This file knows one connection to a PostgreSQL server.
#pragma once

#include "arguments.hpp"
#include "dialects/dialect.hpp"
#include "dialects/prepared_texts.hpp"
#include "handle.hpp"
#include "server.hpp"

#include <string>
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
  void end_session(std::string_view session, Deadline deadline) override;
  bool usable() const noexcept override { return usable_; }
  std::string server() const override;

  // For what only this dialect does.
  PGconn* native() const noexcept { return connection_.get(); }

 private:
  // What becomes of a request that has no answer.
  enum class Sent { statement, nothing_that_runs };

  void make_settings(Deadline deadline);
  // The statement's name on this connection; prepares it there at its first use.
  const std::string& prepared(const Statement& statement, Deadline deadline);
  // Sends the statement with arguments_.
  const Answer& execute(const Statement& statement, Deadline deadline);
  // Before a request: throws if the deadline has passed or nothing can be sent any more. Nothing ran then.
  void begin_request(Deadline deadline);
  // Sends what is buffered and reads every result to the end; nothing is believed unless all of them are good.
  // `accepted`: what libpq said to the request.
  void finish_request(int accepted, Sent sent, Deadline deadline);
  void read(PGresult* result);
  Failure failure_in(const PGresult* result, Sent sent) const;
  [[noreturn]] void broken(Sent sent);
  [[noreturn]] void late(Sent sent);

  const bool prepare_;
  const Handle connection_;
  const std::string user_;          // as the server knows it
  const std::string prefix_;        // behind a pooler a name of ours never means another client's statement
  PreparedTexts<std::string> prepared_;  // their names
  Arguments arguments_;
  Answer answer_;
  bool usable_ = true;
};

}  // namespace dlock::dialects::DLOCK_DIALECT
