// A loss is told in time although the renewer's connection hangs.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a process stopped past its lease, whose renewal hangs, is told once, and knows at its first instruction") {
  ServerDatabase database;
  Proxy proxy(database.server());
  auto engine = database->engine();
  const auto lease = 2000ms * slowness();
  Child holder(worker({"watch", database.server().url_at(proxy.address()), "job", std::to_string(lease.count())}));
  REQUIRE(holder.line());
  proxy.black_hole();
  // Its next renewal has left, and hangs.
  CHECK(eventually([&] { return engine.inspect("job")->left < lease / 2; }));
  holder.signal(SIGSTOP);
  const auto next = engine.try_lock_for("job", 2min);
  REQUIRE(next);
  holder.tell("check");  // waits in the pipe for its first instruction
  holder.signal(SIGCONT);
  bool told = false, asked = false;
  for (int i = 0; i < 2; ++i) {
    const auto line = holder.line().value_or("");
    if (line == "lost") asked = true;
    else if (line.starts_with("lost ")) {
      told = true;
      CHECK_MESSAGE(line.ends_with(" unconfirmed 1"), line);
    }
  }
  CHECK(told);
  CHECK(asked);
  proxy.cut();
  proxy.pass();
  holder.tell("times");
  CHECK(holder.line() == "1");
  CHECK(database->admin().owner("job") == next->owner());
  holder.tell("end");
}
