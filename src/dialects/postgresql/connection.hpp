// One connection to a PostgreSQL server.
#pragma once

#include "arguments.hpp"
#include "dialects/dialect.hpp"
#include "dialects/prepared_texts.hpp"
#include "handle.hpp"
#include "server.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlock::dialects::postgresql {

// How a connection is used.
enum class SessionUse {
  own_session,   // as a session of its own, unless a pooler is found in between, then or by an earlier connection
  lent_session,  // as if there were one: each statement in a transaction of its own that brings its settings along
  as_it_is,      // as lent_session, and without any settings
};

class ServerConnection final : public Connection {
 public:
  // Connects. Makes the session's settings where it is a session of its own: a pooler makes up the number of its
  // backend, and what were set through it would be somebody else's setting next. Throws Failure.
  ServerConnection(const Server& server, SessionUse use, Deadline deadline);

  const Answer& run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) override;
  const Answer& run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                         Deadline deadline) override;
  std::optional<AnswerOfCommit> run_in_one_commit(const StatementOfRows& first, const StatementOfRows& second,
                                                  Deadline deadline) override;
  bool post(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) override;
  void script(std::string_view sql, Deadline deadline) override;
  std::string default_schema(Deadline deadline) override;
  std::vector<std::string> weaknesses(Deadline deadline) override;
  void end_session(std::string_view session, Deadline deadline) override;
  bool usable() const noexcept override { return usable_; }
  Duration lock_wait() const noexcept override { return std::chrono::milliseconds{50}; }
  bool at_rest() const noexcept override { return !unanswered_; }
  bool drain(const Deadline& deadline) noexcept override;
  std::string server() const override;

  // For what only this dialect does.
  PGconn* native() const noexcept { return connection_.get(); }
  // Whether nothing lies between this connection and its backend.
  bool has_own_session() const noexcept { return use_ == SessionUse::own_session; }

 private:
  // What becomes of a request that has no answer.
  enum class Sent { statement, nothing_that_runs };

  // What of a request's answer counts.
  struct Expected {
    int result = 0;             // the result of this one of its commands; the others only have to be good
    std::string prepared_as{};  // what its first command prepares the statement as; empty: nothing
    int more = 0;               // so many after it count as well: the last that has rows
    bool rows_of_all = false;   // or all of them
  };
  enum class Received { all, late };

  void make_settings(Deadline deadline);
  // Sends the statement with arguments_, in one round trip.
  const Answer& execute(const Statement& statement, Deadline deadline);
  const Answer& finish_prepared(const Expected& expected, const Statement& statement, Deadline deadline);
  // Several statements, likewise, but for the first time in this session.
  const Answer& run_packet(const Statement& statement, std::span<const Argument> arguments, Deadline deadline);
  const Answer& run_text(const Statement& statement, std::span<const Argument> arguments, Deadline deadline);
  using Names = std::vector<std::string>;  // of what is prepared
  const Names& packet(const Statement& statement, std::span<const Argument> arguments, Deadline deadline);
  // In a request of its own. Its name.
  std::string prepared(const Statement& statement, Deadline deadline);
  // Puts the statement with arguments_ into what is to be sent.
  Expected put(const Statement& statement);
  // Before a request: throws if the deadline has passed or nothing can be sent any more. Nothing ran then.
  void begin_request(Deadline deadline);
  // Before a request: throws if the server has ended the connection since the last one. Nothing ran then.
  void look_for_end();
  // What the server says beside its answers.
  void heed(const PGresult* notice) noexcept;
  // Reads what post() has left unanswered.
  void catch_up_on_answers(Deadline deadline);
  // Sends what is buffered. `accepted`: what libpq said to the request.
  void flush(int accepted, Sent sent, Deadline deadline);
  // Reads every result to the end; nothing is believed unless all of them are good.
  Received receive(const Expected& expected, Sent sent, const Deadline& deadline, std::optional<Failure>& failure,
                   int& good);
  // Throws what the request failed with. `statement`: what its first command prepares.
  Received finish_request(const Expected& expected, const Statement* statement, Sent sent, Deadline deadline);
  // After a failure: a transaction that was begun with the statement is ended.
  void leave_transaction(Deadline deadline) noexcept;
  // `added`: to what was read before.
  void read(PGresult* result, bool added);
  Failure failure_in(const PGresult* result, Sent sent) const;
  [[noreturn]] void broken(Sent sent);
  [[noreturn]] void late(Sent sent);

  SessionUse use_;
  const std::shared_ptr<std::atomic<bool>> lends_sessions_;  // the server's
  const Handle connection_;
  const std::string user_;               // as the server knows it
  const std::string prefix_;             // behind a pooler a name of ours never means another client's statement
  PreparedTexts<std::string> prepared_;  // their names
  PreparedTexts<Names> packets_;         // and of those that are parts of a packet
  std::size_t names_ = 0;                // how many were ever given
  std::optional<Instant> unanswered_{};  // since then the answer to a post() is awaited
  Arguments arguments_, second_arguments_;
  Answer answer_;
  bool unconfirmed_ = false;  // the standby has not confirmed what the last request has committed
  bool ended_ = false;        // the server has said that it ends the connection
  bool began_ = false;        // the last statement brought a BEGIN along
  bool usable_ = true;
};

}  // namespace dlock::dialects::postgresql
