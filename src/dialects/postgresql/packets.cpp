// Sends several statements in one request, which is one transaction; each sees what was committed before it began.
#include "connection.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace dlock::dialects::postgresql {
namespace {

constexpr Oid oid_of_text = 25, oid_of_bigint = 20;

// What each argument is: not every statement of a packet uses all of them, and so tells their types.
std::vector<Oid> types_of(std::span<const Argument> arguments) {
  std::vector<Oid> types;
  types.reserve(arguments.size());
  for (const auto& argument : arguments)
    types.push_back(std::holds_alternative<std::int64_t>(argument) ? oid_of_bigint : oid_of_text);
  return types;
}

}  // namespace

const Answer& ServerConnection::run_packet(const Statement& statement, std::span<const Argument> arguments,
                                           Deadline deadline) {
  begin_request(deadline);
  auto* const to = connection_.get();
  if (use_ != SessionUse::own_session || PQtransactionStatus(to) != PQTRANS_IDLE)
    return run_text(statement, arguments, deadline);
  const auto& names = packet(statement, arguments, deadline);
  arguments_.set(arguments);
  bool accepted = PQenterPipelineMode(to) != 0;
  for (const auto& name : names)
    accepted = accepted &&
               PQsendQueryPrepared(to, name.c_str(), arguments_.count(), arguments_.values(), nullptr, nullptr, 0) != 0;
  if (!accepted || PQpipelineSync(to) == 0) broken(Sent::nothing_that_runs);
  flush(1, Sent::statement, deadline);
  return finish_prepared({0, {}, static_cast<int>(names.size()) - 1}, statement, deadline);
}

// Without a Sync between them they are one transaction.
std::optional<AnswerOfCommit> ServerConnection::run_in_one_commit(const StatementOfRows& first,
                                                                  const StatementOfRows& second, Deadline deadline) {
  auto* const to = connection_.get();
  arguments_.set_rows(first.rows, first.columns);
  second_arguments_.set_rows(second.rows, second.columns);
  begin_request(deadline);
  if (use_ != SessionUse::own_session || PQtransactionStatus(to) != PQTRANS_IDLE) return std::nullopt;
  const auto name = prepared(first.statement, deadline), second_name = prepared(second.statement, deadline);
  const auto send = [to](const std::string& statement, const Arguments& with) {
    return PQsendQueryPrepared(to, statement.c_str(), with.count(), with.values(), nullptr, nullptr, 0) != 0;
  };
  const bool accepted = PQenterPipelineMode(to) != 0 && send(name, arguments_) && send(second_name, second_arguments_);
  if (!accepted || PQpipelineSync(to) == 0) broken(Sent::nothing_that_runs);
  flush(1, Sent::statement, deadline);
  const auto& rows = finish_prepared({0, {}, 1, true}, first.statement, deadline);
  return AnswerOfCommit{rows, rows.affected};
}

std::string ServerConnection::prepared(const Statement& statement, Deadline deadline) {
  if (const auto* known = prepared_.find(statement)) return *known;
  auto name = fmt::format("{}_{}", prefix_, ++names_);
  flush(PQsendPrepare(connection_.get(), name.c_str(), statement.sql.c_str(), 0, nullptr), Sent::nothing_that_runs,
        deadline);
  if (finish_request({-1, {}}, nullptr, Sent::nothing_that_runs, deadline) == Received::late)
    late(Sent::nothing_that_runs);
  return prepared_.add(statement, std::move(name));
}

// In a request of its own, so that a packet that fails leaves nothing half prepared.
const ServerConnection::Names& ServerConnection::packet(const Statement& statement, std::span<const Argument> arguments,
                                                        Deadline deadline) {
  if (const auto* known = packets_.find(statement)) return *known;
  auto* const to = connection_.get();
  const auto types = types_of(arguments);
  Names names;
  bool accepted = PQenterPipelineMode(to) != 0;
  for (const auto piece : pieces_of(statement.sql)) {
    names.push_back(fmt::format("{}_{}", prefix_, ++names_));
    accepted = accepted && PQsendPrepare(to, names.back().c_str(), std::string(piece).c_str(),
                                         static_cast<int>(types.size()), types.data()) != 0;
  }
  if (!accepted || PQpipelineSync(to) == 0) broken(Sent::nothing_that_runs);
  flush(1, Sent::nothing_that_runs, deadline);
  if (finish_request({-1, {}}, nullptr, Sent::nothing_that_runs, deadline) == Received::late)
    late(Sent::nothing_that_runs);
  return packets_.add(statement, std::move(names));
}

}  // namespace dlock::dialects::postgresql
