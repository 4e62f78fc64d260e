// What PostgreSQL's words for a failure must become.
#include "faults.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace dlock;
using dlock::dialects::postgresql::connect_failure;
using dlock::dialects::postgresql::failure_of;
using dlock::dialects::postgresql::in_one_line;

namespace {

bool says(const Failure& failure, const std::string& words) {
  return std::string(failure.what()).find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("every SQLSTATE has its cause") {
  const std::pair<const char*, Cause> expected[] = {
      {"40P01", Cause::deadlock},        {"40001", Cause::serialization}, {"55P03", Cause::locked},
      {"25006", Cause::read_only},       {"53100", Cause::read_only},     {"53300", Cause::refused},
      {"57P01", Cause::disconnected},    {"57P02", Cause::disconnected},  {"57P03", Cause::refused},
      {"57014", Cause::timed_out},       {"08006", Cause::disconnected},  {"26000", Cause::stale_statement},
      {"42P05", Cause::stale_statement}, {"42P01", Cause::schema},        {"42703", Cause::schema},
      {"3F000", Cause::schema},          {"42P16", Cause::schema},        {"42501", Cause::permission},
      {"28P01", Cause::permission},      {"28000", Cause::permission},    {"3D000", Cause::rejected},
      {"22003", Cause::rejected},        {"0A000", Cause::rejected},      {"", Cause::rejected},
  };
  for (const auto& [code, cause] : expected) {
    const auto failure = failure_of(code, "words", "app", true);
    CHECK_MESSAGE(failure.cause() == cause, code);
    CHECK(failure.code() == code);
    CHECK(says(failure, "words"));
  }
}

TEST_CASE("only a connection that ends leaves open whether a statement ran, and only if it was sent") {
  for (const char* code : {"57P01", "57P02", "57P05", "08006", "40003", "25P03"}) {
    CHECK(failure_of(code, "", "app", true).may_have_run());
    CHECK_FALSE(failure_of(code, "", "app", false).may_have_run());
  }
  for (const char* code : {"40001", "40P01", "55P03", "57014", "53100", "26000", "42501", "XX000"})
    CHECK_FALSE(failure_of(code, "", "app", true).may_have_run());
}

TEST_CASE("a missing right is named as the statement that gives it") {
  CHECK(says(failure_of("42501", "permission denied for table resource_lock", "app", true),
             "GRANT SELECT, INSERT, UPDATE, DELETE ON resource_lock TO app"));
  CHECK(says(failure_of("42501", "permission denied for table resource_lock_schema_history", "app", true),
             "GRANT SELECT ON resource_lock_schema_history TO app"));
  CHECK(says(failure_of("42501", "permission denied for view resource_lock_status", "My App", true),
             "GRANT SELECT ON resource_lock_status TO \"My App\""));
  CHECK(says(failure_of("42501", "permission denied for schema locks", "app", true),
             "GRANT USAGE ON SCHEMA locks TO app"));
  CHECK(std::string(failure_of("42501", "must be owner of table resource_lock", "app", true).what()) ==
        "PostgreSQL: must be owner of table resource_lock; it must belong to the role that migrates: ALTER … OWNER TO "
        "app");
}

TEST_CASE("a refused connection has the SQLSTATE's cause, whatever the language") {
  const auto wrong = connect_failure(
      "connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  28P01: Passwort-Authentifizierung "
      "fehlgeschlagen\n"
      "ORT:  auth_failed, auth.c:334\n",
      "app", false);
  CHECK(wrong.cause() == Cause::permission);
  CHECK(wrong.code() == "28P01");
  CHECK(says(wrong, "cannot connect as app: connection to server at \"127.0.0.1\", port 5432 failed: FATAL: "));
  CHECK(says(wrong, "Passwort-Authentifizierung fehlgeschlagen"));
  CHECK_FALSE(says(wrong, "auth.c"));
  CHECK_FALSE(says(wrong, "28P01"));
  CHECK_FALSE(says(wrong, "\n"));

  const auto absent = connect_failure("… failed: FATAL:  3D000: database \"orders\" does not exist\n", "app", false);
  CHECK(absent.cause() == Cause::rejected);
  CHECK(says(absent, "database \"orders\" does not exist"));

  const auto denied = connect_failure(
      "… failed: FATAL:  42501: permission denied for database \"orders\"\n"
      "DETAIL:  User does not have CONNECT privilege.\n",
      "app", false);
  CHECK(denied.cause() == Cause::permission);
  CHECK(says(denied, "GRANT CONNECT ON DATABASE orders TO app"));
}

TEST_CASE("what passes by itself while connecting is a refusal to try again") {
  for (const char* words :
       {"FATAL:  57P03: the database system is starting up", "FATAL:  53300: sorry, too many clients",
        "FATAL:  57P01: terminating connection", "FATAL:  XX000: out of luck", "FATAL:  25006: in recovery"}) {
    const auto failure = connect_failure(std::string("connection to server failed: ") + words, "app", false);
    CHECK_MESSAGE(failure.cause() == Cause::refused, words);
    CHECK_FALSE(failure.may_have_run());
  }
  CHECK(connect_failure("connection to server at \"db\", port 1 failed: Connection refused\n\tIs the server running?\n",
                        "app", false)
            .cause() == Cause::refused);
}

TEST_CASE("what libpq itself refuses is told from what passes") {
  CHECK(connect_failure("… failed: server does not support SSL, but SSL was required", "app", false).cause() ==
        Cause::rejected);
  CHECK(connect_failure("fe_sendauth: no password supplied\n", "app", true).cause() == Cause::permission);
  CHECK(says(connect_failure("fe_sendauth: no password supplied\n", "app", true), "PGPASSWORD"));
}

TEST_CASE("texts of several lines become one") {
  CHECK(in_one_line("refused\n\tIs the server running?\n") == "refused; Is the server running?");
  CHECK(in_one_line("\n\n") == "");
  CHECK(in_one_line("plain") == "plain");
}
