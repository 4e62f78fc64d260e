// The promise that who comes in beside others, or lets go, does so as a whole or not at all, at whatever
// of its writes its process is killed, and that others come in at once.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/whole.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Hand hand(store::LockTable& table, int number, Mode mode) {
  Hand made(table, number);
  if (mode == Mode::shared) made.reading();
  else made.wanting(1, 2);
  return made;
}

// Whether somebody writes the file now.
bool being_written(Database& database, Admin& probe) {
  try {
    probe.run(database.test_database().begin_writing());
  } catch (const std::exception&) { return true; }
  probe.run("ROLLBACK");
  return false;
}

}  // namespace

TEST_CASE("at whatever of its writes the process is killed of who comes in or lets go, nothing of it is seen") {
  struct Write {
    const char *table, *when;
    bool leaving;
  };
  const Write writes[]{
      {"resource_lock_holder", "BEFORE INSERT", false}, {"resource_lock_holder", "AFTER INSERT", false},
      {"resource_lock", "AFTER UPDATE", false},         {"resource_lock", "BEFORE UPDATE", true},
      {"resource_lock", "AFTER UPDATE", true},          {"resource_lock_holder", "AFTER DELETE", true}};
  for (const auto mode : {Mode::shared, Mode::permits}) {
    for (const auto& write : writes) {
      INFO(to_string(mode) << ", " << std::string(write.when) << " of " << std::string(write.table)
                           << ", leaving: " << write.leaving);
      Database database;
      auto& admin = database.admin();
      const auto rows = [&] {
        return admin.row("job") +
               admin.text("SELECT group_concat(owner || token || gate || expires_at, ' ') FROM resource_lock_holder");
      };
      {
        const auto table = database.table();
        REQUIRE(hand(*table, 1, mode).acquire());
      }
      // Without an end: whoever comes to that write stays in it.
      const std::string endless = std::string("CREATE TRIGGER endless ") + write.when + " ON " + write.table +
                                  " BEGIN SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 - "
                                  "i FROM n) SELECT i FROM n); "
                                  "END";
      Copy other([&](const Copy::Say& say) {
        const auto table = open_table(database.url(), 1);
        auto who = hand(*table, 2, mode);
        if (write.leaving && !who.acquire()) return;
        Admin(database.test_database()).run(endless);
        say("ready");
        static_cast<void>(write.leaving ? who.release() : who.acquire());
        say("went on");
      });
      REQUIRE(other.line() == "ready");
      const auto before = rows();
      // Nothing but that write takes so long.
      Admin probe(database.test_database());
      probe.text("PRAGMA busy_timeout = 100");
      REQUIRE(eventually([&] {
        for (int i = 0; i < 5; ++i)
          if (!being_written(database, probe)) return false;
        return true;
      }));
      CHECK(rows() == before);
      other.signal(SIGKILL);
      CHECK(other.wait() == killed_by(SIGKILL));
      CHECK(other.line().empty());
      CHECK(rows() == before);
      CHECK(half_done(admin) == "");
      admin.run("DROP TRIGGER endless");
      const auto table = database.table();
      auto next = hand(*table, 3, mode), writer = Hand(*table, 4);
      CHECK_FALSE(writer.acquire());
      if (write.leaving && mode == Mode::permits) {
        CHECK_FALSE(next.acquire());  // until the lease of who was killed is over
        admin.run("UPDATE resource_lock_holder SET expires_at = acquired_at WHERE owner = '" + identity(2) + "'");
      }
      CHECK(next.acquire());
      CHECK(half_done(admin) == "");
      admin.run("DELETE FROM resource_lock_holder");
      admin.run("UPDATE resource_lock SET owner = NULL, mode = '' WHERE name = 'job'");
    }
  }
}
