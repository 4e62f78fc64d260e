// The promise that a connection whose end has arrived while it was idle is not written to: nothing was delivered then,
// and nothing is in doubt.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// How many connections of this machine to a port the other side alone has ended, in the kernel's table of them.
int ended_by(const Address& other) {
  constexpr auto close_wait = "08";
  int count = 0;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);  // the heads of its columns
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    const auto port = std::stoul(remote.substr(remote.find(':') + 1), nullptr, 16);
    if (state == close_wait && port == other.port) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a try on an idle connection that was ended, with no other to be had, is unavailable and not in doubt") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()),
                {.connections = 1, .timeouts = {.request = 600ms * slowness()}});
  engine.try_lock("warm").reset();
  proxy.refuse();
  REQUIRE(eventually([&] { return ended_by(proxy.address()) == 1; }));
  const auto thrown = thrown_by([&] { engine.try_lock("job"); });
  CHECK_MESSAGE(thrown.fault == Fault::unavailable, thrown.text);
  proxy.pass();
  CHECK(engine.try_lock("job"));
}
