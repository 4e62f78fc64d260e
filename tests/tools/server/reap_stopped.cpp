// The promise that `dlock reap` which is stopped while the database hangs shows what it has settled.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/rows.hpp"
#include "tools/unread_pipe.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("reap that is stopped in the middle of a statement ends, and shows what it has settled") {
  ServerDatabase database;
  Proxy proxy(database.server());
  add_old_rows(database->admin(), "left/", 1, 41, true);
  proxy.hold_next_request("ORDER BY h.name, h.owner");  // who is dead: once all that was abandoned is settled
  auto child = dlock_at(database.server().url_at(proxy.address()), {"reap"});
  REQUIRE(eventually([&] { return proxy.holds(); }));
  CHECK(database->admin().held() == 0);
  child.signal(SIGTERM);
  const auto ran = finish(child);
  CHECK(ran.code == 128 + SIGTERM);
  CHECK_MESSAGE(ran.says("settled \"left/000000\" (token 41): held by left/000000 (node 1)"), ran.out);
  CHECK_MESSAGE(ran.says("warning: the database has not answered: one lease more"), ran.out);
}

TEST_CASE("reap that is stopped in the middle of a statement ends, though nobody reads what it has settled") {
  ServerDatabase database;
  Proxy proxy(database.server());
  add_old_rows(database->admin(), std::string(120, 'n') + "/", 40, 1, true);  // more than the pipe takes
  proxy.hold_next_request("ORDER BY h.name, h.owner");
  const UnreadPipe pipe;
  auto child = pipe.dlock_into(database.server().url_at(proxy.address()), {"reap"});
  REQUIRE(eventually([&] { return proxy.holds(); }));
  CHECK(database->admin().held() == 0);
  child.signal(SIGTERM);
  CHECK(end_of(child) == 128 + SIGTERM);
  CHECK(pipe.has_something());
}
