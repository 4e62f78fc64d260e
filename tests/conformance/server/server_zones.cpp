// The promise that times are UTC, whatever the zone of the server.
#include "support/database.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("the zone of the server changes nothing") {
  ServerDatabase database;
  auto elsewhere = database->engine();  // its connection began in another zone
  for (const char* zone : {"+13:00", "-11:30", "+05:45", "+00:00"}) {
    database.server().use_time_zone(zone);
    auto engine = database->engine();
    const auto lock = engine.try_lock("job", {.lease = 1h});
    REQUIRE(lock);
    const auto now = std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
    const auto off = database->admin().acquired_at("job") - now;
    CHECK_MESSAGE(off < 5min, zone);
    CHECK_MESSAGE(off > -5min, zone);
    Refusal refusal;
    CHECK_FALSE(elsewhere.try_lock("job", {}, &refusal));
    CHECK(refusal.holder.state == State::held);
    CHECK(refusal.holder.held < 10min);
    CHECK(refusal.holder.left > 50min);
    CHECK(refusal.holder.left <= 1h);
  }
}
