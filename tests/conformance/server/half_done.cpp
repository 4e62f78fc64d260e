// The promise that who comes in beside others, or lets go, does so as a whole or not at all, wherever its
// connection is cut and at whatever of its writes its session ends; and that the others come in as if it had never
// asked, or when its lease ends.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/proxy.hpp"
#include "support/whole.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Way {
  const char* name;
  Mode mode;
};

constexpr Way ways[]{{"a reader", Mode::shared}, {"a permit", Mode::permits}};

Hand hand(store::LockTable& table, int number, Mode mode, const std::string& name = "job") {
  Hand made(table, number, name);
  if (mode == Mode::shared) made.reading();
  else made.wanting(1, 2);
  return made;
}

// Somebody holds "job" beside whom one place is free, and somebody else asks.
struct Scene {
  ServerDatabase database{};
  std::unique_ptr<store::LockTable> table = database->table();
  Mode mode;
  Hand beside;
  int others = 10;

  explicit Scene(Mode chosen) : mode(chosen), beside(hand(*table, 1, chosen)) {
    admin().run("UPDATE resource_lock SET token = 100000 WHERE name = ''");  // all tokens are of one length
    REQUIRE(beside.acquire());
  }
  ~Scene() { CHECK(beside.release()); }

  Admin& admin() { return database->admin(); }
  bool is_in(const Hand& who) {
    return admin().number("SELECT count(*) FROM resource_lock_holder WHERE token > 0 AND owner = '" + who.owner() +
                          "'") == 1;
  }
  // Whether there is room for one more beside who is in, but for one that may not be beside any.
  bool lets_in(int places) {
    std::vector<Hand> came;
    for (int i = 0; i < places; ++i) came.push_back(hand(*table, ++others, mode));
    bool all = true;
    for (auto& one : came) all = one.acquire() && all;
    Hand writer(*table, ++others);
    CHECK_FALSE(writer.acquire());
    if (mode == Mode::permits) {
      auto more = hand(*table, ++others, mode);
      CHECK_FALSE(more.acquire());
    }
    for (auto& one : came) all = one.release() && all;
    return all;
  }
  // After the other one's request ended somewhere.
  void check(const Hand& who, const std::string& row_before, bool in_before) {
    CHECK(half_done(admin()) == "");
    const bool in = is_in(who);
    if (in == in_before) CHECK(admin().row("job") == row_before);
    if (mode == Mode::permits) CHECK(lets_in(in ? 0 : 1));
    else CHECK(lets_in(1));
    if (!in) return;
    // Its client is gone: its lease ends.
    admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at WHERE owner = '" + who.owner() + "'");
    CHECK(lets_in(1));
    CHECK(half_done(admin()) == "");
  }
};

// Where a request of that length is cut: all over it, and closely at its end.
std::vector<std::size_t> cuts(std::size_t length) {
  std::vector<std::size_t> at;
  const auto step = length / 48 + 1;
  for (std::size_t i = 0; i + 24 < length; i += step) at.push_back(i);
  for (std::size_t i = length - std::min<std::size_t>(length, 24); i <= length; i += 3) at.push_back(i);
  if (at.back() != length) at.push_back(length);
  return at;
}

}  // namespace

TEST_CASE("wherever a connection is cut while somebody comes in or lets go, that is done as a whole or not at all") {
  for (const auto& [name, mode] : ways) {
    for (const bool leaving : {false, true}) {
      INFO(std::string(name) << ", leaving: " << leaving);
      Scene scene(mode);
      Proxy proxy(scene.database.server());
      const auto warm = [&] {
        auto table = open_table(scene.database.server().url_at(proxy.address()), 1);
        auto one = hand(*table, 2, mode, "warm");
        REQUIRE(one.acquire());
        REQUIRE(one.release());
        return table;
      };
      std::size_t length = 0;
      {
        const auto table = warm();
        auto one = hand(*table, 3, mode);
        auto sent = proxy.sent().size();
        REQUIRE(one.acquire());
        if (leaving) sent = proxy.sent().size();
        if (leaving) REQUIRE(one.release());
        length = proxy.sent().size() - sent;
        if (!leaving) REQUIRE(one.release());
      }
      REQUIRE(length > 100);
      std::size_t done = 0, not_done = 0;
      int number = 1000;
      for (const auto bytes : cuts(length)) {
        INFO("after " << bytes << " bytes of " << length);
        const auto table = warm();
        auto who = hand(*table, ++number, mode);
        if (leaving) REQUIRE(who.acquire());
        const auto row = scene.admin().row("job");
        proxy.cut_next_after(bytes);
        CHECK_THROWS_AS(static_cast<void>(leaving ? who.release() : who.acquire()), Failure);
        REQUIRE(eventually([&] { return proxy.cut_was_noticed(); }));
        ++(scene.is_in(who) == leaving ? not_done : done);
        if (bytes == length) CHECK(scene.is_in(who) != leaving);
        scene.check(who, row, leaving);
        scene.admin().run("DELETE FROM resource_lock_holder WHERE owner = '" + who.owner() + "'");
      }
      CHECK(done > 0);
      CHECK(not_done > 10);
    }
  }
}

TEST_CASE("at whatever of its writes the session ends of who comes in or lets go, nothing of it is seen") {
  struct Write {
    const char *table, *way;
    bool leaving, beside_the_dead;
  };
  const Write writes[]{
      {"resource_lock_holder", "INSERT", false, false}, {"resource_lock", "UPDATE", false, false},
      {"resource_lock_holder", "UPDATE", false, true},  {"resource_lock_holder", "DELETE", false, true},
      {"resource_lock_holder", "INSERT", false, true},  {"resource_lock", "UPDATE", true, false},
      {"resource_lock_holder", "DELETE", true, false}};
  for (const auto& [name, mode] : ways) {
    for (const auto& write : writes) {
      if (write.beside_the_dead && mode != Mode::permits) continue;  // others are counted by nobody
      INFO(std::string(name) << ", " << std::string(write.way) << " of " << std::string(write.table)
                             << ", leaving: " << write.leaving);
      Scene scene(mode);
      auto dead = hand(*scene.table, 2, mode);
      if (write.beside_the_dead) {
        REQUIRE(dead.acquire());
        scene.admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at WHERE owner = '" + dead.owner() +
                          "'");
        // And one who has been seen dead for a day.
        scene.admin().run(
            "INSERT INTO resource_lock_holder (name, owner, gate, token, mode, acquired_at, expires_at) VALUES ('job', "
            "'long ago', '-', -1, 'permits', 1, 1)");
      }
      const auto table = open_table(scene.database.server().url_to_hold_writes(), 1);
      auto who = hand(*table, 3, mode);
      if (write.leaving) REQUIRE(who.acquire());
      const auto row = scene.admin().row("job");
      scene.database.server().hold_writes(write.table, write.way);
      auto asked = std::async(std::launch::async, [&] { return write.leaving ? who.release() : who.acquire(); });
      REQUIRE(eventually([&] { return scene.database.server().holding_back(); }));
      CHECK(scene.is_in(who) == write.leaving);
      CHECK(scene.admin().row("job") == row);
      scene.database.server().disconnect_everybody();
      CHECK_THROWS_AS(static_cast<void>(asked.get()), Failure);
      REQUIRE(eventually([&] { return !scene.database.server().holding_back(); }));
      scene.admin().block("job");  // waits until what was begun there is undone
      scene.admin().unblock();
      scene.database.server().let_go();
      CHECK(scene.is_in(who) == write.leaving);
      CHECK(scene.is_in(dead) == write.beside_the_dead);
      try {  // its connection was ended, too
        static_cast<void>(hand(*scene.table, 4, mode, "warm").barge());
      } catch (const Failure&) {}
      scene.admin().run("DELETE FROM resource_lock_holder WHERE name = 'warm'");
      scene.admin().run("UPDATE resource_lock SET owner = NULL, mode = '' WHERE name = 'warm'");
      scene.check(who, row, write.leaving);
      scene.admin().run("DELETE FROM resource_lock_holder WHERE owner = '" + who.owner() + "'");
    }
  }
}
