// What each of MySQL's and MariaDB's error numbers must become.
#include "faults.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace dlock;
using dlock::dialects::mysql::failure_of;

TEST_CASE("every error number has its cause; of those not listed the client library's are a lost connection") {
  const std::pair<Cause, std::vector<unsigned>> expected[] = {
      {Cause::refused, {2001, 2002, 2003, 2004, 2005, 1040, 1203, 1226, 1461, 3032}},
      {Cause::disconnected, {1053, 1077, 1079, 2006, 2013, 2055, 1158, 1159, 1160, 1161, 1927, 4031}},
      {Cause::disconnected, {2000, 2008, 2014, 2026, 2027, 2061, 2999}},
      {Cause::locked, {1205, 3572}},
      {Cause::deadlock, {1213, 1614}},
      {Cause::serialization, {1020, 3101}},
      {Cause::read_only, {1047, 1290, 1792, 1836, 1021, 1114}},
      {Cause::timed_out, {1969, 3024, 1317}},
      {Cause::schema, {1146, 1054, 1049, 1356}},
      {Cause::permission, {1044, 1045, 1142, 1143, 1227, 1370, 1419, 1698, 5010}},
      {Cause::stale_statement, {1243, 1615}},
      {Cause::rejected, {1064, 1062, 1366, 1406, 1999, 2019, 2058, 2059, 3000, 9999, 0}},
  };
  for (const auto& [cause, numbers] : expected)
    for (const unsigned number : numbers) {
      const auto failure = failure_of(number, "words", "app", false);
      CHECK_MESSAGE(failure.cause() == cause, number);
      CHECK(failure.code() == std::to_string(number));
      CHECK(std::string(failure.what()).find("words") != std::string::npos);
    }
}

TEST_CASE("a commit that failed was refused, or nobody knows") {
  const auto failure = [](const char* text) { return failure_of(1180, text, "app", true); };
  const auto locked = failure("Got error 1 \"Operation not permitted\" during COMMIT");
  CHECK(locked.cause() == Cause::locked);
  CHECK_FALSE(locked.may_have_run());
  const auto refused = failure("Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT");
  CHECK(refused.cause() == Cause::deadlock);
  CHECK_FALSE(refused.may_have_run());
  for (const char* text :
       {"Error while appending streaming replication fragment(provider status: Not connected to Primary "
        "Component)",
        "Got error 5 \"Input/output error\" during COMMIT"}) {
    CHECK(failure(text).cause() == Cause::disconnected);
    CHECK(failure(text).may_have_run());
  }
}

TEST_CASE("only a connection that breaks leaves open whether a statement that was sent has run") {
  for (const unsigned number : {1053U, 1927U, 2006U, 2013U}) {
    CHECK(failure_of(number, "", "app", true).may_have_run());
    CHECK_FALSE(failure_of(number, "", "app", false).may_have_run());
  }
  for (const unsigned number : {1205U, 1213U, 1020U, 1290U, 1146U, 1142U, 1064U, 2003U})
    CHECK_FALSE(failure_of(number, "", "app", true).may_have_run());
}
