// How the clients' tables are made and read.
#include "fault/suite/bank.hpp"

#include "fault/suite/ledger.hpp"
#include "support/admin.hpp"

#include <soci/soci.h>

namespace dlock::test {
namespace {

constexpr long long opening = 100;

long long integer(const soci::row& row, std::size_t column) {
  return row.get_properties(column).get_data_type() == soci::dt_integer ? row.get<int>(column)
                                                                        : row.get<long long>(column);
}

}  // namespace

void open_bank(const TestDatabase& test_database, const std::vector<std::string>& names) {
  Admin admin(test_database);
  admin.run("CREATE TABLE till (name VARCHAR(64) NOT NULL PRIMARY KEY, seq BIGINT NOT NULL)");
  admin.run(
      "CREATE TABLE account (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(64) NOT NULL, balance BIGINT NOT NULL)");
  admin.run(
      "CREATE TABLE transfer (id VARCHAR(64) NOT NULL PRIMARY KEY, name VARCHAR(64) NOT NULL, seq BIGINT NOT NULL, "
      "token BIGINT NOT NULL, source BIGINT NOT NULL, target BIGINT NOT NULL, amount BIGINT NOT NULL)");
  long long id = 0;
  for (const auto& name : names) {
    admin.run("INSERT INTO till (name, seq) VALUES ('" + name + "', 0)");
    for (auto left = accounts_of(ledger_of(name)); left > 0; --left)
      admin.run("INSERT INTO account (id, name, balance) VALUES (" + std::to_string(++id) + ", '" + name + "', " +
                std::to_string(opening) + ")");
  }
}

Books read_books(const TestDatabase& test_database, const std::vector<std::string>& names) {
  Books books;
  const auto sql = test_database.connect();
  const std::string transfers = "SELECT id, name, seq, token, source, target, amount FROM transfer ORDER BY id";
  const soci::rowset<soci::row> rows = (sql->prepare << transfers);
  for (const auto& row : rows)
    books.transfers.push_back({row.get<std::string>(0), row.get<std::string>(1), integer(row, 2), integer(row, 3),
                               integer(row, 4), integer(row, 5), integer(row, 6)});
  const std::string accounts = "SELECT id, balance FROM account ORDER BY id";
  const soci::rowset<soci::row> balances = (sql->prepare << accounts);
  for (const auto& row : balances) books.accounts.push_back({integer(row, 0), opening, integer(row, 1)});
  Admin admin(test_database);
  for (const auto& name : names) books.tokens[name] = number(admin.token(name));
  return books;
}

}  // namespace dlock::test
