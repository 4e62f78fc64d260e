// How answers are read, and that one is used again without traces of what it was.
#include "types/row.hpp"

#include "types/failure.hpp"

#include <doctest/doctest.h>

using namespace dlock;

TEST_CASE("fields are read by row and column") {
  Answer answer;
  answer.reset(2);
  answer.next() = std::int64_t{1};
  answer.next() = std::string("one");
  answer.next() = std::int64_t{2};
  answer.next() = nullptr;
  CHECK(answer.rows() == 2);
  CHECK(answer.columns() == 2);
  CHECK(answer.integer(0, 0) == 1);
  CHECK(answer.text(0, 1) == "one");
  CHECK(answer.integer(1, 0) == 2);
  CHECK(answer.is_null(1, 1));
  CHECK(answer.text(1, 1).empty());
  CHECK_FALSE(answer.is_null(0, 1));
}

TEST_CASE("a field of another kind than expected is a defect that is noticed") {
  Answer answer;
  answer.reset(1);
  answer.next() = std::string("1");
  CHECK_THROWS_AS(answer.integer(0, 0), std::bad_variant_access);
  answer.reset(1);
  answer.next() = std::int64_t{1};
  CHECK_THROWS_AS(answer.text(0, 0), std::bad_variant_access);
  CHECK_THROWS(answer.text(1, 0));
}

TEST_CASE("a number that is missing was not answered: what was asked may have been done, and is asked again") {
  Answer answer;
  answer.reset(1);
  answer.next() = nullptr;
  try {
    answer.integer(0, 0);
    FAIL("NULL is no number");
  } catch (const Failure& failure) {
    CHECK(is_transient(failure.cause()));
    CHECK(failure.may_have_run());
  }
}

TEST_CASE("an answer that is used again is empty") {
  Answer answer;
  answer.reset(1);
  answer.next() = std::int64_t{7};
  answer.affected = 3;
  answer.reset(2);
  CHECK(answer.rows() == 0);
  CHECK(answer.affected == 0);
  answer.reset(0);
  CHECK(answer.rows() == 0);
}
