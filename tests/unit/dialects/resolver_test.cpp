// How the addresses of a host are found.
#include "dialects/resolver.hpp"

#include "support/eventually.hpp"
#include "support/process.hpp"
#include "types/failure.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace dlock::test;
using namespace std::chrono_literals;
using dlock::BootClock;
using dlock::Cause;
using dlock::Deadline;
using dlock::Failure;
using dlock::later;
using dlock::dialects::is_address;
using dlock::dialects::Resolver;

namespace {

Deadline soon() { return later(BootClock::now(), 30s); }

}  // namespace

TEST_CASE("an address is known as one, and is its own address") {
  for (const char* address : {"127.0.0.1", "::1", "fe80::1%eth0", "2001:db8::7"}) {
    CHECK(is_address(address));
    CHECK(Resolver().addresses_of(address, soon()) == std::vector<std::string>{address});
  }
  for (const char* host : {"localhost", "127.0.0", "db.example.org", "a%b", ""}) CHECK_FALSE(is_address(host));
}

TEST_CASE("a host is looked up on a thread that ends") {
  const auto threads = count_threads();
  Resolver resolver;
  for (int i = 0; i < 10; ++i) {
    const auto found = resolver.addresses_of("localhost", soon());
    REQUIRE(!found.empty());
    for (const auto& address : found) CHECK(is_address(address));
  }
  CHECK(eventually([&] { return count_threads() <= threads; }));
}

TEST_CASE("a host that is not there, or that there is no time to look up, is a failure that passes") {
  Resolver resolver;
  const auto fails = [&](const std::string& host, const Deadline& deadline) {
    try {
      static_cast<void>(resolver.addresses_of(host, deadline));
    } catch (const Failure& failure) {
      CHECK(std::string(failure.what()).find(host) != std::string::npos);
      return failure.cause() == Cause::refused && !failure.may_have_run();
    }
    return false;
  };
  CHECK(fails("no-such-host.invalid", soon()));
  CHECK(fails("no host at all", soon()));
  CHECK(fails("no-other-host.invalid", BootClock::now()));
}
