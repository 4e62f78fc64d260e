// What an identity looks like, that none comes twice, and that a fork is noticed.
#include "types/owner.hpp"

#include "support/exit_status.hpp"
#include "types/process.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <set>

using namespace dlock;

TEST_CASE("an identity is 32 hexadecimal digits, and no two are equal") {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto identity = random_identity();
    CHECK(identity.size() == 32);
    CHECK(identity.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(seen.insert(identity).second);
  }
}

TEST_CASE("a child made by fork() draws other identities and knows that it is a child") {
  const ForkGuard fork_guard;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto identity = random_identity();
    const bool told = fork_guard.forked() && ::write(ends[1], identity.data(), identity.size()) == 32;
    ::_exit(told ? 0 : 1);
  }
  REQUIRE(child > 0);
  CHECK(dlock::test::await_end(child) == 0);
  CHECK_FALSE(fork_guard.forked());
  std::string theirs(32, ' ');
  REQUIRE(::read(ends[0], theirs.data(), theirs.size()) == 32);
  CHECK(theirs != random_identity());
  ::close(ends[0]);
  ::close(ends[1]);
}
