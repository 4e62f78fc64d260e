// The statements with which a test looks at the lock table, and changes it.
// SOCI's rules here: the whole text first, only lvalues bound, nothing kept after an error.
#include "support/admin.hpp"

#include <soci/soci.h>

namespace dlock::test {

Admin::Admin(const TestDatabase& test_database) : test_database_(test_database), sql_(test_database.connect()) {}
Admin::~Admin() = default;

void Admin::run(const std::string& sql) { *sql_ << sql; }

long long Admin::number(const std::string& sql) {
  long long value = 0;
  soci::indicator known = soci::i_null;
  *sql_ << sql, soci::into(value, known);
  return sql_->got_data() && known == soci::i_ok ? value : 0;
}

std::string Admin::text(const std::string& sql) {
  std::string value;
  soci::indicator known = soci::i_null;
  *sql_ << sql, soci::into(value, known);
  return sql_->got_data() && known == soci::i_ok ? value : std::string{};
}

void Admin::age(std::string_view name, Duration by) {
  const std::string key(name);
  const long long us = by.count();
  for (const std::string table : {"resource_lock_holder", "resource_lock"}) {
    const std::string sql = "UPDATE " + table +
                            " SET expires_at = expires_at - :a, acquired_at = acquired_at - :b, "
                            "reopens_at = CASE WHEN reopens_at > 0 THEN reopens_at - :c ELSE 0 END WHERE name = :name";
    *sql_ << sql, soci::use(us, "a"), soci::use(us, "b"), soci::use(us, "c"), soci::use(key, "name");
  }
}

void Admin::expire(std::string_view name) {
  const std::string key(name);
  for (const char* table : {"resource_lock", "resource_lock_holder"}) {
    const std::string sql = std::string("UPDATE ") + table + " SET expires_at = acquired_at WHERE name = :name";
    *sql_ << sql, soci::use(key, "name");
  }
}

void Admin::make_idle_for_days(std::string_view name) { age(name, std::chrono::hours{100}); }

long long Admin::column(const char* column, std::string_view name) {
  const std::string key(name);
  long long value = 0;
  soci::indicator known = soci::i_null;
  const std::string sql = std::string("SELECT ") + column + " FROM resource_lock WHERE name = :name";
  *sql_ << sql, soci::use(key, "name"), soci::into(value, known);
  return sql_->got_data() && known == soci::i_ok ? value : 0;
}

bool Admin::exists(std::string_view name) { return column("count(*)", name) == 1; }
Token Admin::token(std::string_view name) { return Token{column("token", name)}; }
Token Admin::floor() { return Token{number("SELECT token FROM resource_lock WHERE name = ''")}; }
Duration Admin::expires_at(std::string_view name) { return Duration{column("expires_at", name)}; }
Duration Admin::reopens_at(std::string_view name) { return Duration{column("reopens_at", name)}; }
Duration Admin::acquired_at(std::string_view name) { return Duration{column("acquired_at", name)}; }

std::string Admin::owner(std::string_view name) {
  const std::string key(name);
  std::string value;
  soci::indicator known = soci::i_null;
  const std::string sql = "SELECT owner FROM resource_lock WHERE name = :name";
  *sql_ << sql, soci::use(key, "name"), soci::into(value, known);
  return sql_->got_data() && known == soci::i_ok ? value : std::string{};
}

std::string Admin::row(std::string_view name) { return text(test_database_.row_of(name)); }

int Admin::held() {
  return static_cast<int>(number("SELECT count(*) FROM resource_lock WHERE name <> '' AND owner IS NOT NULL"));
}

void Admin::block(std::string_view name) {
  run(test_database_.begin_writing());
  const std::string key(name);
  const std::string sql = "UPDATE resource_lock SET label = 'blocked' WHERE name = :name";
  *sql_ << sql, soci::use(key, "name");
}

void Admin::unblock() { run("ROLLBACK"); }

}  // namespace dlock::test
