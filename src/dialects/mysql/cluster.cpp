// Asks a server of a cluster again, once it has caught up, what it may not have known: every server of a cluster takes
// writes, and what one has acknowledged reaches the others a little later.
#include "broken_pipe.hpp"
#include "connection.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

namespace dlock::dialects::mysql {
namespace {

// A packet may say something of a name more than once.
std::size_t names_in(const Answer& answer) {
  std::set<std::string> names;
  for (std::size_t row = 0; row < answer.rows(); ++row) names.insert(answer.text(row, 0));
  return names.size();
}

// Whether what should be there was not found. What a packet has changed does not tell that: its answer does.
bool found_nothing(const Statement& statement, const Answer& answer) {
  if (statement.hinted("counted")) return answer.rows() == 0 || answer.integer(0, 0) == 0;
  if (!statement.hinted("wanted") && !statement.hinted("matched")) return false;
  return statement.hinted("packet") ? answer.rows() == 0 : answer.affected == 0;
}

}  // namespace

// Waits until what any server of the cluster had acknowledged is here. It answers no row, and leaves no setting in the
// session. Group replication waits in front of a transaction, and not of a SELECT that names no table.
std::string_view ServerConnection::catching_up() const noexcept {
  if (cluster_ == Cluster::group)
    return "SET SESSION group_replication_consistency = 'BEFORE'; BEGIN; COMMIT; "
           "SET SESSION group_replication_consistency = DEFAULT;";
  return mariadb_ ? "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1 LIMIT 0;"
                  : "SET SESSION wsrep_sync_wait = 1; SELECT 1 LIMIT 0; SET SESSION wsrep_sync_wait = DEFAULT;";
}

// On a cluster, what was acknowledged by another server may not have arrived here yet. For what is run while this lives
// it has. Where each text may go to another session, a pooler's, the text of the statement begins with the wait.
class ServerConnection::Caught {
 public:
  Caught(ServerConnection& connection, Deadline deadline) : connection_(connection) {
    if (!connection_.prepare_) {
      connection_.first_ = connection_.catching_up();
      return;
    }
    try {
      connection_.query(std::string(connection_.catching_up()), deadline);
    } catch (const Failure& failure) {
      connection_.usable_ = false;
      // Of the statement itself it is known that it did nothing.
      throw Failure(failure.cause(), fmt::format("{} (to wait for the other servers of the cluster)", failure.what()),
                    failure.code());
    }
  }
  ~Caught() { connection_.first_ = {}; }
  Caught(const Caught&) = delete;
  Caught& operator=(const Caught&) = delete;

 private:
  ServerConnection& connection_;
};

// A row that is not there, or is another one's, may be so on this server of a cluster only: then it is asked again. In
// lock.sql, "fresh" is what has to see everything from the first, "matched" what changes a row that should be there,
// and "wanted" what does so and answers whether somebody waits for it. A packet that is "matched" answers no row where
// it found none, and one that is "counted" answers 0 first. All of them may be run twice; what one that is "final" has
// said stands where it says nothing the second time.
const Answer& ServerConnection::run(const Statement& statement, std::span<const Argument> arguments,
                                    Deadline deadline) {
  if (statement.hinted("at_once") && !mariadb_) {  // it cannot keep from waiting
    answer_.reset(1);
    return answer_;
  }
  const BrokenPipeGuard guard(encrypted_);
  check_sendable(deadline);
  std::optional<Caught> caught;
  if (in_cluster() && statement.hinted("fresh")) caught.emplace(*this, deadline);
  run_once(statement, arguments, deadline);
  if (in_cluster() && found_nothing(statement, answer_)) {
    caught.emplace(*this, deadline);
    run_once(statement, arguments, deadline);
  }
  return answer_;
}

const Answer& ServerConnection::run_rows(const Statement& statement, std::span<const Argument> rows,
                                         std::size_t columns, Deadline deadline) {
  if (statement.hinted("at_once") && !mariadb_) {
    answer_.reset(2);
    return answer_;
  }
  const BrokenPipeGuard guard(encrypted_);
  check_sendable(deadline);
  auto whole = run_rows_once(statement, rows, columns, deadline);
  if (in_cluster() && statement.hinted("matched") && names_in(whole) < rows.size() / columns) {
    try {
      const Caught caught(*this, deadline);
      auto again = run_rows_once(statement, rows, columns, deadline);
      if (statement.hinted("final")) whole.add(again);
      else whole = std::move(again);
    } catch (const Failure& failure) {
      if (whole.affected == 0) throw;  // else some of them are done
      throw Failure(failure.cause(), failure.what(), failure.code(), true);
    }
  }
  answer_ = std::move(whole);
  return answer_;
}

// In one text: what is read is the position of the server that has waited.
std::string ServerConnection::position(Deadline deadline) {
  if (!in_cluster()) return {};
  const BrokenPipeGuard guard(encrypted_);
  check_sendable(deadline);
  const bool group = cluster_ == Cluster::group;
  try {
    query(fmt::format("{} {}", catching_up(),
                      group ? "SELECT @@GLOBAL.gtid_executed" : "SHOW GLOBAL STATUS LIKE 'wsrep_last_committed'"),
          deadline);
  } catch (const Failure& failure) {
    usable_ = false;  // a setting may be left in the session
    throw Failure(failure.cause(), fmt::format("{} (to wait for the other servers of the cluster)", failure.what()),
                  failure.code());
  }
  return answer_.rows() == 0 ? std::string{} : answer_.text(0, group ? 0 : 1);
}

}  // namespace dlock::dialects::mysql
