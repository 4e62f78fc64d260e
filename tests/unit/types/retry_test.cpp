// What is done again, and what is thrown when it is not.
#include "types/retry.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using namespace dlock;

namespace {

// Fails so many times, in other words each time.
struct Failing {
  int failures = 0, calls = 0;
  int operator()() {
    if (++calls <= failures) throw Failure(Cause::locked, "failure " + std::to_string(calls));
    return calls;
  }
};

}  // namespace

TEST_CASE("what does not fail is done once, and nobody is asked") {
  CHECK(retry(Failing{}, [](const Failure&) -> bool { throw std::logic_error("asked"); }) == 1);
}

TEST_CASE("what fails is done again as long as it is said so, with each failure in its order") {
  std::string told;
  CHECK(retry(Failing{3}, [&](const Failure& failure) {
          told += failure.what();
          return true;
        }) == 4);
  CHECK(told == "failure 1failure 2failure 3");
}

TEST_CASE("the last failure is thrown, whole") {
  int asked = 0;
  try {
    retry([&]() -> int { throw Failure(Cause::disconnected, "try " + std::to_string(asked), "57P01", true); },
          [&](const Failure&) { return ++asked < 3; });
    FAIL_CHECK("it never ended well");
  } catch (const Failure& failure) {
    CHECK(failure.cause() == Cause::disconnected);
    CHECK(std::string(failure.what()) == "try 2");
    CHECK(failure.code() == "57P01");
    CHECK(failure.may_have_run());
  }
  CHECK(asked == 3);
}

TEST_CASE("another failure may be thrown in its place; what is none is not done again") {
  CHECK_THROWS_WITH_AS(retry(Failing{9}, [](const Failure&) -> bool { throw Failure(Cause::schema, "instead"); }),
                       "instead", Failure);
  int asked = 0;
  CHECK_THROWS_AS(retry([]() -> int { throw std::runtime_error("none"); }, [&](const Failure&) { return ++asked > 0; }),
                  std::runtime_error);
  CHECK(asked == 0);
}
