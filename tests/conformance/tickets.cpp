// The promise that tickets are numbered as they are drawn, and that a lock goes to the smallest live one.
#include "store/reaper_table.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// As if a waiter had not renewed its row for that long.
void let_die(Database& database, const Hand& waiter) {
  database.admin().run("UPDATE resource_lock_waiter SET expires_at = 1 WHERE owner = '" + waiter.owner() + "'");
}

std::int64_t column(Database& database, const std::string& name) {
  return database.admin().number("SELECT " + name + " FROM resource_lock WHERE name = 'job'");
}

}  // namespace

TEST_CASE("tickets drawn by eight at once have one number after the other, and whoever has one sees all smaller ones") {
  constexpr int threads = 8, each = 5;
  Database database;
  const auto table = open_table(database.url(), threads);
  std::vector<std::int64_t> drawn(threads * each);
  in_parallel(threads, [&](int thread) {
    for (int i = 0; i < each; ++i) {
      Hand waiter(*table, 1 + thread * each + i);
      const auto ticket = waiter.draw_ticket();
      drawn[static_cast<std::size_t>(thread * each + i)] = ticket;
      const auto seen = table->waiting().waiters("job", soon());
      const auto before =
          std::count_if(seen.begin(), seen.end(), [&](const auto& other) { return other.ticket <= ticket; });
      if (before != ticket) throw std::runtime_error(fmt::format("{} of {} seen", before, ticket));
    }
  });
  std::sort(drawn.begin(), drawn.end());
  for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(drawn[i] == static_cast<std::int64_t>(i) + 1);
  CHECK(column(database, "next_ticket") == threads * each);
  CHECK(column(database, "served_ticket") == 0);
  const auto holder = table->inspect("job", soon());
  REQUIRE(holder);
  CHECK(holder->waiters == threads * each);
  CHECK(holder->state == State::free);
  CHECK(database.admin().number("SELECT waiters FROM resource_lock_status WHERE name = 'job'") == threads * each);
}

TEST_CASE("asked again, the same owner has the same ticket; one that is dead gets a larger one") {
  Database database;
  const auto table = database.table();
  Hand first(*table, 1), second(*table, 2);
  CHECK(first.draw_ticket() == 1);
  CHECK(second.draw_ticket() == 2);
  CHECK(first.draw_ticket() == 1);
  CHECK(column(database, "next_ticket") == 2);
  let_die(database, first);
  CHECK_FALSE(first.lives());
  CHECK(first.draw_ticket() == 3);
  CHECK(first.lives());
  CHECK(second.lives());
  CHECK(column(database, "next_ticket") == 3);
}

TEST_CASE("the lock goes from ticket to ticket, whoever asks first") {
  Database database;
  const auto table = database.table();
  Hand first(*table, 1), second(*table, 2), third(*table, 3);
  first.draw_ticket();
  second.draw_ticket();
  third.draw_ticket();
  CHECK_FALSE(third.acquire());
  CHECK_FALSE(second.acquire());
  CHECK(first.acquire());
  CHECK(column(database, "served_ticket") == 1);
  CHECK_FALSE(second.acquire());
  CHECK(first.release());
  CHECK_FALSE(third.acquire());
  CHECK(second.look().free);
  CHECK_FALSE(third.look().free);
  CHECK(third.look().queued);
  CHECK(second.acquire());
  CHECK(second.release());
  CHECK(third.acquire());
  CHECK(third.release());
  CHECK(column(database, "served_ticket") == column(database, "next_ticket"));
}

TEST_CASE("whoever waits without a ticket and draws one keeps it, however late what it wrote before arrives") {
  Database database;
  const auto table = database.table();
  Hand first(*table, 1), second(*table, 2);
  CHECK(first.draw_ticket() == 1);
  CHECK(second.draw_ticket() == 2);
  first.add();
  CHECK(first.lives());
  CHECK_FALSE(second.acquire());
  CHECK(first.draw_ticket() == 1);
  CHECK(database.admin().text("SELECT mode FROM resource_lock_waiter WHERE owner = '" + first.owner() + "'") == "fifo");
  CHECK(first.acquire());
  CHECK(first.release());
  CHECK(second.acquire());
  CHECK(second.release());
}

TEST_CASE("a dead ticket blocks nobody, and stays dead once it was passed over") {
  Database database;
  const auto table = database.table();
  Hand first(*table, 1), second(*table, 2);
  first.draw_ticket();
  second.draw_ticket();
  let_die(database, first);
  CHECK(second.look().free);
  CHECK(second.acquire());
  CHECK(column(database, "served_ticket") == 2);
  // A renewal that was on its way while the lock was granted.
  database.admin().run("UPDATE resource_lock_waiter SET expires_at = 9000000000000000 WHERE owner = '" + first.owner() +
                       "'");
  CHECK_FALSE(first.lives());
  CHECK_FALSE(first.acquire());
  CHECK(second.release());
  CHECK(table->inspect("job", soon())->waiters == 0);
  CHECK(first.draw_ticket() == 3);
  CHECK(first.acquire());
  CHECK(first.release());
}

TEST_CASE("who has no ticket passes no live one, and all dead ones") {
  Database database;
  const auto table = database.table();
  Hand first(*table, 1), second(*table, 2), barger(*table, 3);
  first.draw_ticket();
  second.draw_ticket();
  CHECK_FALSE(barger.barge());
  const auto busy = barger.look();
  CHECK_FALSE(busy.free);
  CHECK(busy.queued);
  CHECK(busy.holder.empty());
  CHECK(busy.opens_in > 30min);
  let_die(database, first);
  CHECK_FALSE(barger.barge());
  let_die(database, second);
  CHECK(barger.look().free);
  CHECK(barger.barge());
  CHECK(column(database, "served_ticket") == 2);
  const auto held = second.look();
  CHECK_FALSE(held.free);
  CHECK_FALSE(held.queued);
  CHECK(held.holder == barger.actor());
  database.admin().run("UPDATE resource_lock_waiter SET expires_at = 9000000000000000");
  CHECK_FALSE(first.lives());
  CHECK_FALSE(second.lives());
  CHECK(barger.release());
}

TEST_CASE("a holder that asks again ends no ticket that was drawn since") {
  Database database;
  const auto table = database.table();
  Hand holder(*table, 1), waiter(*table, 2);
  CHECK(holder.barge());
  waiter.draw_ticket();
  const auto token = holder.token();
  CHECK(holder.barge());
  CHECK(holder.token() == token);
  CHECK(waiter.lives());
  CHECK(column(database, "served_ticket") == 0);
  CHECK(holder.release());
  CHECK_FALSE(holder.barge());
  CHECK(waiter.acquire());
  CHECK(waiter.release());
}

TEST_CASE("an entry of a node that is in already ends no ticket, whatever ticket it has itself") {
  Database database;
  const auto table = database.table();
  Hand first(*table, 1), stranger(*table, 2), second(*table, 3);
  CHECK(first.entering().barge());
  stranger.draw_ticket();
  second.draw_ticket();
  CHECK(second.entering().acquire());
  CHECK(second.token() == first.token());
  CHECK(column(database, "served_ticket") == 0);
  CHECK(stranger.lives());
  CHECK(first.release());
  CHECK(second.release());
  CHECK(stranger.acquire());
  CHECK(stranger.release());
}

TEST_CASE("who leaves the queue is out of the way at once") {
  Database database;
  const auto table = database.table();
  Hand first(*table, 1), second(*table, 2);
  first.draw_ticket();
  second.draw_ticket();
  first.remove();
  CHECK(second.acquire());
  CHECK(second.release());
  CHECK_FALSE(first.lives());
}

TEST_CASE("all that is asked about waiters can be asked where nothing is prepared") {
  Database database;
  const auto table = open_table(database.url(), 2, {}, false);
  Hand holder(*table, 1), first(*table, 2), second(*table, 3), added(*table, 4);
  CHECK(holder.barge());
  table->waiting().want("job", 1h, soon());
  CHECK(first.draw_ticket() == 1);
  CHECK(second.draw_ticket() == 2);
  CHECK(second.draw_ticket() == 2);
  added.add();
  CHECK(first.lives());
  CHECK(first.chain().size() == 1);
  CHECK(table->waiting().waiters("", soon()).size() == 3);
  CHECK_FALSE(holder.hand_over(second));
  REQUIRE(holder.hand_over(first));
  CHECK(first.release());
  CHECK(second.look().free);
  CHECK(second.acquire());
  CHECK(second.release());
  let_die(database, added);
  CHECK_FALSE(added.lives());
  CHECK(table->waiting().forget_waiters(10, soon()) == 1);
  first.remove();
  second.remove();
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 0);
}

TEST_CASE("waiters are listed by name and ticket, with who they wait for") {
  Database database;
  const auto table = database.table();
  Hand holder(*table, 1), second(*table, 2), third(*table, 3), elsewhere(*table, 4, "other"), added(*table, 5);
  CHECK(holder.barge());
  second.draw_ticket();
  third.reading().having_waited(1h).draw_ticket();
  elsewhere.wanting(1, 2).having_waited(1h).add();
  added.add();
  auto all = table->waiting().waiters("", soon());
  REQUIRE(all.size() == 4);
  CHECK(all[0].owner == added.owner());
  CHECK_FALSE(all[0].in_transaction);
  CHECK(all[0].ticket == 0);
  CHECK(all[0].mode == Mode::exclusive);
  CHECK(all[1].owner == second.owner());
  CHECK_FALSE(all[1].in_transaction);
  CHECK(all[1].ticket == 1);
  CHECK_FALSE(all[1].left);
  CHECK(all[1].mode == Mode::exclusive);
  CHECK(all[1].waited >= 0s);
  CHECK(all[1].waited < 1h);
  CHECK(all[1].holder_actor == holder.actor());
  CHECK(all[1].holder_label == "label");
  CHECK(all[1].holder_token == holder.token());
  CHECK(all[2].owner == third.owner());
  CHECK(all[2].mode == Mode::shared);
  CHECK(all[2].waited >= 1h);
  CHECK(all[3].name == "other");
  CHECK(all[3].mode == Mode::permits);
  CHECK(all[3].waited >= 1h);
  CHECK(all[3].actor == elsewhere.actor());
  CHECK(all[3].holder_actor.empty());
  CHECK(table->waiting().waiters("jo", soon()).size() == 3);
  CHECK(table->waiting().waiters("x", soon()).empty());
  CHECK(table->list("", soon()).size() == 1);
  CHECK(table->list("", soon()).at(0).waiters == 3);
  CHECK(holder.release());
}

TEST_CASE("a name that somebody wants is not removed, and a fresh mark is not written again") {
  Database database;
  const auto table = database.table();
  auto& admin = database.admin();
  Hand holder(*table, 1);
  CHECK(holder.barge());
  CHECK(holder.release());
  admin.make_idle_for_days("job");
  table->waiting().want("job", 1h, soon());
  const auto marked = column(database, "wanted_until");
  CHECK(marked > 0);
  table->waiting().want("job", 1h, soon());
  CHECK(column(database, "wanted_until") == marked);
  table->waiting().want("job", 3h, soon());
  CHECK(column(database, "wanted_until") > marked);
  table->reaping().raise_floor(1h, soon());
  const auto idle = table->reaping().idle({}, Token{1'000'000}, 1h, soon());
  REQUIRE(idle.size() == 1);
  CHECK(table->reaping().remove_idle(idle, soon()) == 0);
  admin.run("UPDATE resource_lock SET wanted_until = 1 WHERE name = 'job'");
  CHECK(table->reaping().remove_idle(idle, soon()) == 1);
  table->waiting().want("job", 1h, soon());
  CHECK_FALSE(admin.exists("job"));
}

TEST_CASE("tickets of a name whose row is new begin above those that are left") {
  Database database;
  const auto table = database.table();
  Hand first(*table, 1), second(*table, 2), third(*table, 3);
  first.draw_ticket();
  second.draw_ticket();
  database.admin().run("DELETE FROM resource_lock WHERE name = 'job'");
  CHECK(first.lives());
  CHECK(third.draw_ticket() == 3);
  CHECK_FALSE(third.acquire());
  CHECK_FALSE(second.acquire());
  CHECK(first.acquire());
  CHECK(first.release());
  CHECK(second.acquire());
  CHECK(second.release());
}

TEST_CASE("the reaper forgets who has been dead for a minute, and nobody else") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  Hand living(*table, 1), dead(*table, 2), added(*table, 3);
  living.draw_ticket();
  dead.draw_ticket();
  added.add();
  let_die(database, dead);
  let_die(database, added);
  engine.reap();
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 1);
  CHECK(living.lives());
  living.remove();
}
