// Which names the store remembers to be free, and which it forgets.
#include "store/free_names.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace dlock::store;

TEST_CASE("a name is likely to be free once it was freed twice, until it is found taken") {
  const auto names = std::make_unique<FreeNames>();
  CHECK_FALSE(names->likely("job"));
  names->freed("job");
  CHECK_FALSE(names->likely("job"));
  names->freed("job");
  CHECK(names->likely("job"));
  CHECK_FALSE(names->likely("another"));
  names->taken("another");
  CHECK(names->likely("job"));
  names->taken("job");
  CHECK_FALSE(names->likely("job"));
  names->freed("job");
  CHECK_FALSE(names->likely("job"));
}

TEST_CASE("names that are freed by turns do not make each other forgotten") {
  const auto names = std::make_unique<FreeNames>();
  constexpr int count = 256;
  for (int turn = 0; turn < 2; ++turn)
    for (int i = 0; i < count; ++i) names->freed("worker/" + std::to_string(i));
  int likely = 0;
  for (int i = 0; i < count; ++i) likely += names->likely("worker/" + std::to_string(i)) ? 1 : 0;
  CHECK(likely >= count - 2);  // by chance a few may meet
}

TEST_CASE("however many names there are, the newest is known") {
  const auto names = std::make_unique<FreeNames>();
  for (int i = 0; i < 100'000; ++i) names->freed("crowd/" + std::to_string(i));
  for (int turn = 0; turn < 2; ++turn) names->freed("newest");
  CHECK(names->likely("newest"));
}

TEST_CASE("names that come back are known, however many others came once before") {
  const auto names = std::make_unique<FreeNames>();
  for (int i = 0; i < 100'000; ++i) names->freed("crowd/" + std::to_string(i));
  constexpr int count = 64;
  for (int turn = 0; turn < 3; ++turn)
    for (int i = 0; i < count; ++i) names->freed("worker/" + std::to_string(i));
  int likely = 0;
  for (int i = 0; i < count; ++i) likely += names->likely("worker/" + std::to_string(i)) ? 1 : 0;
  CHECK(likely >= count - 2);  // by chance two may meet in a place
}
