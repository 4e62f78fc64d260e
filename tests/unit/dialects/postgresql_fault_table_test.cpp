// Every row of PostgreSQL's table of failures is meant.
#include "faults.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace dlock;
using dlock::dialects::postgresql::failure_of;

TEST_CASE("every SQLSTATE and every class of the table has its cause, and all others are rejected") {
  const std::pair<Cause, std::vector<const char*>> expected[] = {
      {Cause::deadlock, {"40P01"}},
      {Cause::serialization, {"40001", "40000", "40002"}},
      {Cause::locked, {"55P03"}},
      {Cause::read_only, {"25006", "53100", "58000", "58030", "XX000", "XX001", "XX002"}},
      {Cause::refused, {"53000", "53200", "53300", "53400", "57P03"}},
      {Cause::disconnected,
       {"40003", "57P01", "57P02", "57P04", "57P05", "25P03", "25P04", "08000", "08003", "08006", "08P01"}},
      {Cause::timed_out, {"57014"}},
      {Cause::stale_statement, {"26000", "42P05"}},
      {Cause::schema, {"42P01", "42703", "42P10", "42P16", "42804", "42809", "42883", "55000", "23502", "3F000"}},
      {Cause::permission, {"42501", "28000", "28P01"}},
      {Cause::rejected, {"22003", "23505", "42601", "3D000", "0A000", "57000", "25001", "4", ""}},
  };
  for (const auto& [cause, codes] : expected)
    for (const char* code : codes) CHECK_MESSAGE(failure_of(code, "words", "app", true).cause() == cause, code);
}
