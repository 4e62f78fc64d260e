// The promise that times are UTC, whatever the zone of the process.
#include "support/child.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a process in an odd time zone writes the same times as everybody else") {
  Database database;
  auto engine = database.engine();
  int count = 0;
  for (const char* zone : {"Pacific/Apia", "America/St_Johns", "Asia/Kathmandu", "UTC+23:59:59", "XXX-14:45",
                           ":nonsense", "Europe/Berlin", ""}) {
    const auto name = "job " + std::to_string(++count);
    Child holder(worker({"hold", database.url(), name, "60000", "0"}), {std::string("TZ=") + zone});
    REQUIRE_MESSAGE(holder.line(), zone);
    const auto now = std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
    const auto off = database.admin().acquired_at(name) - now;
    CHECK_MESSAGE(off < 5min, zone);
    CHECK_MESSAGE(off > -5min, zone);
    const auto row = engine.inspect(name);
    REQUIRE(row);
    CHECK(row->state == State::held);
    CHECK(row->held < 5min);
    holder.tell("release");
    CHECK(holder.line() == "freed");
  }
}
