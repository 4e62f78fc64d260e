// Which sessions of MySQL and MariaDB a transaction must not be trusted to.
#include "caller_connection.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

using namespace dlock;
using namespace std::chrono_literals;
using dlock::dialects::NothingToSpoil;
using dlock::dialects::Send;
using dlock::dialects::TextRow;
using dlock::dialects::mysql::TransactionConnection;

TEST_CASE("a server that undoes whole transactions when a wait is over is refused before anything is locked") {
  std::vector<std::string> sent;
  TextRow answer{"1", "here", "50", "1.5", "10.11.1-MariaDB", "1", "3", "7"};
  const Send send = [&](std::string_view sql) {
    sent.emplace_back(sql);
    return answer;
  };
  TransactionConnection connection(send, {});
  try {
    connection.check();
    FAIL("it was accepted");
  } catch (const Failure& failure) {
    CHECK(failure.cause() == Cause::rejected);
    CHECK(std::string_view(failure.what()).find("innodb_rollback_on_timeout") != std::string_view::npos);
  }
  answer[0] = "0";
  CHECK_NOTHROW(connection.check());
  CHECK(sent.size() == 2);
  for (const auto& sql : sent) CHECK(sql.starts_with("SELECT @@innodb_rollback_on_timeout"));
}

TEST_CASE("the clock of a session is asked again where it is far off, and stands still if it says the same") {
  struct Case {
    const char *behind, *says, *then;
    bool refused;
    std::size_t statements;
  };
  for (const auto& [behind, says, then, refused, statements] :
       {Case{"50", "1.5", "1.6", false, 1}, Case{"20000", "1.5", "1.6", false, 1},
        Case{"20001", "1.5", "1.6", false, 2}, Case{"-1", "1.5", "1.6", false, 2}, Case{"0", "1.5", "1.6", false, 2},
        Case{"20001", "1.5", "1.5", true, 2}, Case{"-36000000000", "1.5", "1.5", true, 2},
        Case{"0", "1.5", "1.5", true, 2}}) {
    INFO(behind << ", " << then);
    std::size_t sent = 0;
    const Send send = [&, behind = behind, says = says, then = then](std::string_view) {
      return ++sent == 1 ? TextRow{"0", "here", behind, says, "9.1.0", "0", "0", "1"} : TextRow{behind, then};
    };
    TransactionConnection connection(send, {});
    if (refused) {
      CHECK_THROWS_AS(connection.check(), Failure);
    } else {
      CHECK_NOTHROW(connection.check());
    }
    CHECK(sent == statements);
  }
}

TEST_CASE(
    "a runner is in a transaction where the server says so, where autocommit is off, or where a savepoint lasts") {
  struct Case {
    TextRow answer;
    bool savepoint_lasts, open;
    std::size_t statements;
  };
  for (const auto& [answer, lasts, open, statements] :
       {Case{{"0", "here", "50", "1.5", "10.11.1-MariaDB", "1", "3", "7"}, false, true, 1},
        // Undone by the server: what comes next begins it anew, and a savepoint lasts.
        Case{{"0", "here", "50", "1.5", "10.11.1-MariaDB", "1", "2", "7"}, true, false, 1},
        Case{{"0", "here", "50", "1.5", "9.1.0", "0", "0", "7"}, false, true, 1},
        Case{{"0", "here", "50", "1.5", "9.1.0", "1", "0", "7"}, true, true, 3},
        Case{{"0", "here", "50", "1.5", "9.1.0", "1", "0", "7"}, false, false, 6}}) {
    INFO(answer[4].value_or("") << ", " << open);
    std::size_t sent = 0;
    const Send send = [&, answer = answer, lasts = lasts](std::string_view sql) {
      ++sent;
      if (sql.starts_with("SELECT 1")) return TextRow{"1"};
      if (sql.starts_with("RELEASE") && !lasts) throw std::runtime_error("SAVEPOINT dlock_check does not exist");
      return sql.starts_with("SELECT") ? answer : TextRow{"0"};
    };
    TransactionConnection connection(send, {});
    if (open) {
      CHECK_NOTHROW(connection.check());
    } else {
      CHECK_THROWS_AS(connection.check(), Failure);
    }
    CHECK(sent == statements);
  }
}

TEST_CASE(
    "a runner that prepares what it is given, and so can make no savepoint, is in a transaction that keeps its kind") {
  for (const bool open : {true, false}) {
    INFO(open);
    const Send send = [&](std::string_view sql) -> TextRow {
      if (sql.starts_with("SAVEPOINT")) throw std::runtime_error("not supported in the prepared statement protocol");
      if (open && sql.starts_with("SET")) throw std::runtime_error("a transaction is in progress");
      return sql.starts_with("SELECT @@") ? TextRow{"0", "here", "50", "1.5", "9.1.0", "1", "0", "7"} : TextRow{"1"};
    };
    TransactionConnection connection(send, {});
    if (open) {
      CHECK_NOTHROW(connection.check());
    } else {
      CHECK_THROWS_AS(connection.check(), Failure);
    }
  }
}

TEST_CASE("what a runner throws when its connection is gone goes through, and is not called a missing transaction") {
  const Send send = [](std::string_view sql) -> TextRow {
    if (sql.starts_with("SELECT @@")) return {"0", "here", "50", "1.5", "9.1.0", "1", "0", "7"};
    throw std::runtime_error("gone");
  };
  TransactionConnection connection(send, {});
  CHECK_THROWS_WITH_AS(connection.check(), "gone", std::runtime_error);
}

TEST_CASE("what fails before anything was answered has a transaction to spoil if one is open") {
  for (const int interrupted : {0, 2}) {
    for (const bool open : {true, false}) {
      INFO(open << ", interrupted " << interrupted << " times");
      int left = interrupted;
      const Send send = [&](std::string_view sql) -> TextRow {
        if (sql.starts_with("SELECT @@")) throw std::runtime_error("interrupted");
        if (open && sql.starts_with("SET")) throw std::runtime_error("a transaction is in progress");
        if (sql.starts_with("RELEASE") && (!open || left-- > 0)) throw std::runtime_error("no such savepoint");
        return {"1"};
      };
      TransactionConnection connection(send, {});
      if (open) {
        CHECK_THROWS_WITH_AS(connection.check(), "interrupted", std::runtime_error);
        continue;
      }
      try {
        connection.check();
        FAIL("it was accepted");
      } catch (const NothingToSpoil& nothing) {
        CHECK_THROWS_WITH_AS(nothing.rethrow(), "interrupted", std::runtime_error);
      }
    }
  }
}

// As where a certified transaction of another node of a cluster has ended it.
TEST_CASE("a transaction that the server has just undone is one that was open") {
  const Send send = [&](std::string_view sql) -> TextRow {
    if (sql.starts_with("SELECT @@")) throw std::runtime_error("Deadlock found when trying to get lock");
    if (sql.starts_with("SHOW ERRORS")) return {"Error", "1213", "Deadlock found when trying to get lock"};
    if (sql.starts_with("RELEASE")) throw std::runtime_error("no such savepoint");
    return {"1"};
  };
  TransactionConnection connection(send, {});
  CHECK_THROWS_WITH_AS(connection.check(), "Deadlock found when trying to get lock", std::runtime_error);
}

TEST_CASE(
    "a transaction is spoiled whichever of the statements for that is interrupted, and else its session is ended") {
  for (const std::size_t interrupted : {0, 1, 2, 3, 4, 5, 6, 7, 100}) {
    INFO(interrupted);
    std::vector<std::string> done;
    std::size_t sent = 0;
    const Send send = [&](std::string_view sql) -> TextRow {
      ++sent;
      const bool ends = interrupted == 100 && !sql.starts_with("KILL");
      if (ends || sent == interrupted || (interrupted == 7 && sent < 3)) throw std::runtime_error("interrupted");
      done.emplace_back(sql.substr(0, sql.find(' ')));
      return {"0"};
    };
    TransactionConnection(send, {}).spoil({});
    REQUIRE(!done.empty());
    CHECK(done.back() == (interrupted == 100 ? "KILL" : "START"));
    CHECK(std::count(done.begin(), done.end(), "START") == (interrupted == 100 ? 0 : 1));
  }
}

TEST_CASE("the idle bound is taken back in the statement that ends the transaction, and nothing is set behind it") {
  for (const bool commits : {true, false}) {
    CAPTURE(commits);
    std::vector<std::string> sent;
    const Send send = [&](std::string_view sql) -> TextRow {
      sent.emplace_back(sql);
      if (sql.find("VERSION()") != std::string_view::npos) return {"10.11.1-MariaDB", "7", "here"};
      if (sql.ends_with("FOR fence")) return {"1"};
      return {"77", "77"};  // what the session had before, among others
    };
    TransactionConnection connection(send, {});
    connection.begin({});
    for (const auto bound : {9s, 5s}) {
      REQUIRE(connection.fence("fence", 1s, bound));
      // The bound is there before the row is locked.
      const auto set = fmt::format("SET SESSION idle_write_transaction_timeout = {}", bound.count());
      const auto at = std::find(sent.begin(), sent.end(), set);
      CHECK(at < std::find_if(
                     at, sent.end(), [](const auto& sql) { return sql.ends_with("FOR fence"); }));
    }
    if (commits) connection.commit();
    else CHECK(connection.roll_back());
    const auto end = std::string(commits ? "COMMIT" : "ROLLBACK") + " AND NO CHAIN NO RELEASE";
    CHECK(sent.back() ==
          "BEGIN NOT ATOMIC SET @@SESSION.idle_write_transaction_timeout = "
          "IF(@@SESSION.idle_write_transaction_timeout IN (9, 5), 77, @@SESSION.idle_write_transaction_timeout); " +
              end + "; END");
    // The next one leaves nothing to take back.
    connection.begin({});
    if (commits) connection.commit();
    else CHECK(connection.roll_back());
    CHECK(sent.back() == end);
  }
}
