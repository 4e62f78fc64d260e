// How arguments must look to PostgreSQL.
#include "arguments.hpp"

#include "types/failure.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>

using namespace dlock;
using dlock::dialects::postgresql::Arguments;

namespace {

std::string array_of(std::span<const Argument> column) {
  Arguments arguments;
  arguments.set_rows(column, 1);
  REQUIRE(arguments.count() == 1);
  return arguments.values()[0];
}

}  // namespace

TEST_CASE("arguments are sent as text, and NULL as none") {
  Arguments arguments;
  const std::array<Argument, 4> row{std::string_view{"a \"b\" \\c"}, std::int64_t{-7}, nullptr,
                                    std::numeric_limits<std::int64_t>::max()};
  arguments.set(row);
  REQUIRE(arguments.count() == 4);
  CHECK(std::string(arguments.values()[0]) == "a \"b\" \\c");
  CHECK(std::string(arguments.values()[1]) == "-7");
  CHECK(arguments.values()[2] == nullptr);
  CHECK(std::string(arguments.values()[3]) == "9223372036854775807");
}

TEST_CASE("nothing of the arguments before is left") {
  Arguments arguments;
  const std::array<Argument, 3> three{std::string_view{"a long text that was there before"}, nullptr, std::int64_t{1}};
  arguments.set(three);
  const std::array<Argument, 2> two{nullptr, std::string_view{"b"}};
  arguments.set(two);
  REQUIRE(arguments.count() == 2);
  CHECK(arguments.values()[0] == nullptr);
  CHECK(std::string(arguments.values()[1]) == "b");
  arguments.set({});
  CHECK(arguments.count() == 0);
}

TEST_CASE("rows become one array a column, in their order") {
  Arguments arguments;
  const std::array<Argument, 6> rows{std::string_view{"a"}, std::int64_t{1}, std::string_view{"b"},
                                     std::int64_t{2},       nullptr,         nullptr};
  arguments.set_rows(rows, 2);
  REQUIRE(arguments.count() == 2);
  CHECK(std::string(arguments.values()[0]) == R"({"a","b",NULL})");
  CHECK(std::string(arguments.values()[1]) == "{1,2,NULL}");
}

TEST_CASE("no rows are empty arrays") {
  Arguments arguments;
  arguments.set_rows({}, 3);
  REQUIRE(arguments.count() == 3);
  for (int i = 0; i < 3; ++i) CHECK(std::string(arguments.values()[i]) == "{}");
}

TEST_CASE("what means something in an array is only text in a name") {
  const std::array<Argument, 8> names{std::string_view{"NULL"}, std::string_view{""},    std::string_view{"a,b"},
                                      std::string_view{"{}"},   std::string_view{"\""},  std::string_view{"\\"},
                                      std::string_view{" x "},  std::string_view{"l\ni"}};
  CHECK(array_of(names) == "{\"NULL\",\"\",\"a,b\",\"{}\",\"\\\"\",\"\\\\\",\" x \",\"l\ni\"}");
}

TEST_CASE("a text with a NUL byte is refused, not cut off") {
  Arguments arguments;
  const std::array<Argument, 1> row{std::string_view{"a\0b", 3}};
  for (const bool many : {false, true}) {
    try {
      if (many) arguments.set_rows(row, 1);
      else arguments.set(row);
      FAIL_CHECK("was not refused");
    } catch (const Failure& failure) {
      CHECK(failure.cause() == Cause::rejected);
      CHECK_FALSE(failure.may_have_run());
    }
  }
}
