// The promise that any number of leases is renewed in one round trip, counted in the protocol.
#include "support/database.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("ten thousand leases travel in one request, and what is not there is not brought back") {
  ServerDatabase database;
  Proxy proxy(database.server());
  const auto table = open_table(database.server().url_at(proxy.address()), 1);
  std::vector<std::string> names;
  for (int i = 0; i < 10000; ++i) names.push_back("a name of usual length/" + std::to_string(i));
  const std::string owner(32, 'a');
  std::vector<store::LeaseKey> claims;
  for (const auto& name : names) claims.push_back({name, owner, Token{1}});
  table->renew({claims.data(), 1}, Deadline::max());  // prepared by that
  const auto before = proxy.requests();
  const auto outcomes = table->renew(claims, Deadline::max());
  CHECK(proxy.requests() - before == 1);
  CHECK(std::count(outcomes.begin(), outcomes.end(), store::Renewed::lost) == 10000);
  CHECK(database->admin().number("SELECT count(*) FROM resource_lock WHERE name <> ''") == 0);
}
