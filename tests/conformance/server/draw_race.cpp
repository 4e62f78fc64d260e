// The promise that tokens grow although one acquire stops between reading its token and inserting its
// row, for so long that others take, release and reap the name meanwhile.
#include "store/reaper_table.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "types/failure.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Race {
  Token before{};  // the last token of the name before the paused acquire inserted
  Token after{};   // the token that the paused acquire answered
};

// `grace` is what the paused engine believes the reaper's grace to be; the reaper's is half a second.
Race force(ServerDatabase& database, Duration grace) {
  Engine slow(database.server().url_to_hold_back(),
              {.timeouts = {.request = 3min}, .reaper = {.retention = 24h, .grace = grace}});
  auto quick = database->engine({.reaper = {.retention = 500ms, .grace = 500ms}});
  database.server().hold_back();
  auto paused = std::async(std::launch::async, [&] {
    auto lock = slow.try_lock("job");
    return lock ? lock->token() : Token{};
  });
  REQUIRE(eventually([&] { return database.server().holding_back(); }));
  Race race;
  for (int i = 0; i < 5; ++i) {
    const auto lock = quick.try_lock("job");
    REQUIRE(lock);
    race.before = lock->token();
  }
  database->admin().make_idle_for_days("job");
  REQUIRE(eventually([&] {
    quick.reap();
    return !database->admin().exists("job");
  }));
  REQUIRE(eventually([&] { return database.server().holding_back(); }));  // all of that fitted into the pause
  database.server().let_go();
  race.after = paused.get();
  REQUIRE(number(race.after) > 0);
  return race;
}

}  // namespace

TEST_CASE("an acquire that was overtaken between its drawing and its inserting gets a token above all the others") {
  ServerDatabase database;
  if (!database.server().can_hold_back_inserts()) return;
  const auto race = force(database, 500ms);
  CHECK(race.after > race.before);
  CHECK(database->engine().try_lock("job")->token() > race.after);
}

TEST_CASE("the race is a real one: who does not look again after the grace gets a token that has been") {
  ServerDatabase database;
  if (!database.server().can_hold_back_inserts()) return;
  const auto race = force(database, 24h);
  if (database.server().undoes_overtaken()) CHECK(race.after > race.before);
  else CHECK(race.after <= race.before);
}

TEST_CASE(
    "an acquire whose row goes before it inserts one gets a token above that, though the floor was lower when it "
    "began") {
  ServerDatabase database;
  if (!database.server().can_hold_back_inserts()) return;
  auto& admin = database->admin();
  admin.run("INSERT INTO resource_lock (name, token, expires_at) VALUES ('job', 20, 1)");
  REQUIRE(admin.floor() == Token{});  // as after a restore that took it back
  Engine slow(database.server().url_to_hold_back(),
              {.timeouts = {.request = 3min}, .reaper = {.retention = 24h, .grace = 24h}});
  database.server().hold_back();
  auto paused = std::async(std::launch::async, [&] {
    auto lock = slow.try_lock("job");
    return lock ? lock->token() : Token{};
  });
  REQUIRE(eventually([&] { return database.server().holding_back(); }));
  admin.run("UPDATE resource_lock SET token = 20 WHERE name = ''");
  admin.run("DELETE FROM resource_lock WHERE name = 'job'");
  REQUIRE(eventually([&] { return database.server().holding_back(); }));
  database.server().let_go();
  CHECK(paused.get() > Token{20});
}

TEST_CASE("a barger that was overtaken by a ticket between its read and its write is refused") {
  ServerDatabase database;
  const auto table = database->table();
  database->engine().try_lock("job").reset();  // its row is there, and free
  Engine slow(database.server().url_to_hold_back(), {.timeouts = {.request = 3min}});
  database.server().hold_back();
  auto paused = std::async(std::launch::async, [&] { return slow.try_lock("job").has_value(); });
  REQUIRE(eventually([&] { return database.server().holding_back(); }));
  Hand first(*table, 1);
  first.draw_ticket();
  REQUIRE(eventually([&] { return database.server().holding_back(); }));
  database.server().let_go();
  CHECK_FALSE(paused.get());
  CHECK(first.acquire());
  CHECK(first.release());
}

TEST_CASE(
    "who asks once more for what was its own, and is freed between its read and its write, passes nobody in line") {
  // It has no ticket, or that under which it was granted the name, or has drawn one since, behind others.
  enum class Ticket { none, its_own, later };
  const Name name("job");
  for (const auto which : {Ticket::none, Ticket::its_own, Ticket::later}) {
    CAPTURE(static_cast<int>(which));
    ServerDatabase database;
    // Asked again after that, it is first by its ticket.
    if (which == Ticket::its_own && database.server().undoes_overtaken()) continue;
    const auto table = database->table();
    const auto slow = open_table(database.server().url_to_hold_back());
    Hand first(*table, 1), second(*table, 2), asker(*slow, 10);
    store::AcquireRequest ask{name, asker.owner(), "node", "label", asker.actor(), 1h, {}, "meta"};
    if (which == Ticket::its_own) ask.ticket = asker.draw_ticket();
    const auto before = slow->acquire(ask, soon()).token;
    REQUIRE(before);
    if (which == Ticket::its_own) asker.remove();  // as whoever waits does once it is granted the name
    first.draw_ticket();
    const auto last = second.draw_ticket();
    if (which == Ticket::later) ask.ticket = last;
    database->admin().expire("job");
    database.server().hold_back();
    auto paused = std::async(std::launch::async, [&] {
      for (;;) {
        try {
          return slow->acquire(ask, soon()).token;
        } catch (const Failure& failure) {  // undone: asked again, as an engine does
          if (failure.cause() != Cause::serialization) throw;
        }
      }
    });
    REQUIRE(eventually([&] { return database.server().holding_back(); }));
    CHECK(table->reaping().settle("job", *before, identity(99), soon()));
    REQUIRE(eventually([&] { return database.server().holding_back(); }));
    database.server().let_go();
    CHECK_FALSE(paused.get());
    CHECK_FALSE(second.acquire());
    CHECK(first.acquire());
    CHECK(first.release());
    CHECK(second.acquire());
    CHECK(second.release());
  }
}
