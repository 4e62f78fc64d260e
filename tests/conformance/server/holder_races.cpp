// The promise that who may hold a name beside others is counted under the name's lock: whatever stops
// between the counting and the writing, never more come in than may, and nobody who died is lost sight of.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr auto far_away = 3min;

EngineOptions patient() {
  return {.reentrance = Reentrance::none,
          .timeouts = {.request = far_away, .release = 10s * slowness()},
          .polling = {.longest = 50ms}};
}

const LockOptions reading{.mode = Mode::shared, .lease = 10min};
const LockOptions writing{.lease = 10min};
const LockOptions one_of_two{.mode = Mode::permits, .limit = 2, .lease = 10min};

using Asked = std::future<std::optional<Lock>>;

bool answered_yet(const Asked& asked) { return asked.wait_for(0s) == std::future_status::ready; }

// Somebody who asks for "job" through a proxy that counts what is asked, and waits until it is let in.
struct Asker {
  Proxy proxy;
  Engine engine;
  Asked asked{};
  std::size_t before = 0;

  explicit Asker(ServerDatabase& database)
      : proxy(database.server()), engine(database.server().url_at(proxy.address()), patient()) {
    for (const auto& options : {reading, writing, one_of_two}) engine.lock("warm", options).release();
  }
  // Returns when it has been turned away at a locked gate, or has been let in.
  void ask(const LockOptions& options) {
    before = proxy.requests();
    asked = std::async(std::launch::async, [this, options] { return engine.try_lock_for("job", far_away, options); });
    REQUIRE(eventually([&] { return answered_yet(asked) || proxy.requests() >= before + 3; }));
  }
};

// One who is stopped when it has counted and is about to write that it came in.
struct Stopped {
  ServerDatabase& database;
  Engine engine{database.server().url_to_hold_writes(), patient()};
  Asked asked{};

  void ask(const LockOptions& options) {
    database.server().hold_writes("resource_lock_holder", "INSERT");
    asked = std::async(std::launch::async, [this, options] { return engine.try_lock("job", options); });
    REQUIRE(eventually([&] { return database.server().holding_back(); }));
  }
};

long long permits_held(ServerDatabase& database) {
  return database->admin().number("SELECT coalesce(sum(permits), 0) FROM resource_lock_holder WHERE name = 'job'");
}

// Who was turned away is in line, if it was.
bool is_turned_away(const Asked& asked, Engine& engine) {
  return eventually([&] { return answered_yet(asked) || !engine.waiters("job").empty(); }) && !answered_yet(asked);
}

}  // namespace

TEST_CASE("who counts while another one has counted and not yet written does not get the same last permit") {
  ServerDatabase database;
  auto holder = database->engine({.reentrance = Reentrance::none});
  auto held = holder.lock("job", one_of_two);
  Asker late(database);
  Stopped first{database};
  first.ask(one_of_two);
  late.ask(one_of_two);
  CHECK_FALSE(answered_yet(late.asked));
  database.server().let_go();
  auto granted = first.asked.get();
  REQUIRE(granted);
  CHECK(is_turned_away(late.asked, holder));
  CHECK(permits_held(database) == 2);
  const auto token = granted->token();
  CHECK(granted->release() == Released::freed);
  const auto next = late.asked.get();
  REQUIRE(next);
  CHECK(next->token() > token);
  CHECK(permits_held(database) == 2);
}

TEST_CASE("of two who came to a locked name for its last permit one has it when the name is unlocked, and one waits") {
  ServerDatabase database;
  auto holder = database->engine({.reentrance = Reentrance::none});
  auto held = holder.lock("job", one_of_two);
  Asker one(database), other(database);
  for (int round = 0; round < 5; ++round) {
    database->admin().block("job");
    one.ask(one_of_two);
    other.ask(one_of_two);
    CHECK_FALSE(answered_yet(one.asked));
    CHECK_FALSE(answered_yet(other.asked));
    database->admin().unblock();
    REQUIRE(eventually([&] { return answered_yet(one.asked) || answered_yet(other.asked); }));
    CHECK(is_turned_away(answered_yet(one.asked) ? other.asked : one.asked, holder));
    CHECK(permits_held(database) == 2);
    auto& winner = answered_yet(one.asked) ? one : other;
    auto& loser = &winner == &one ? other : one;
    auto first = winner.asked.get();
    REQUIRE(first);
    first->release();
    auto second = loser.asked.get();
    REQUIRE(second);
    CHECK(second->token() > first->token());
    second->release();
  }
}

TEST_CASE("a writer that comes while a reader has looked and not yet written waits for that reader") {
  ServerDatabase database;
  auto watching = database->engine({.reentrance = Reentrance::none});
  watching.lock("job").release();
  Asker writer(database);
  Stopped reader{database};
  reader.ask(reading);
  writer.ask(writing);
  CHECK_FALSE(answered_yet(writer.asked));
  database.server().let_go();
  auto granted = reader.asked.get();
  REQUIRE(granted);
  CHECK(is_turned_away(writer.asked, watching));
  CHECK(granted->valid());
  const auto token = granted->token();
  CHECK(granted->release() == Released::freed);
  const auto next = writer.asked.get();
  REQUIRE(next);
  CHECK(next->token() > token);
}

TEST_CASE("a writer that was overtaken by a reader, or by a permit, between its read and its write is refused") {
  for (const auto& options : {reading, one_of_two}) {
    ServerDatabase database;
    auto quick = database->engine({.reentrance = Reentrance::none});
    quick.lock("job").release();
    Engine slow(database.server().url_to_hold_back(), patient());
    database.server().hold_back();
    auto writer = std::async(std::launch::async, [&] { return slow.try_lock("job", writing); });
    REQUIRE(eventually([&] { return database.server().holding_back(); }));
    auto held = quick.try_lock("job", options);
    REQUIRE(held);
    REQUIRE(eventually([&] { return database.server().holding_back(); }));
    database.server().let_go();
    CHECK_FALSE(writer.get());
    CHECK(held->valid());
    CHECK(database->admin().token("job") == held->token());
    CHECK(held->release() == Released::freed);
  }
}

TEST_CASE("of a reader and a writer who came to a locked name one has it when the name is unlocked, and one waits") {
  ServerDatabase database;
  auto watching = database->engine({.reentrance = Reentrance::none});
  watching.lock("job").release();
  Asker reader(database), writer(database);
  for (int round = 0; round < 5; ++round) {
    database->admin().block("job");
    reader.ask(reading);
    writer.ask(writing);
    CHECK_FALSE(answered_yet(reader.asked));
    CHECK_FALSE(answered_yet(writer.asked));
    database->admin().unblock();
    REQUIRE(eventually([&] { return answered_yet(reader.asked) || answered_yet(writer.asked); }));
    CHECK(is_turned_away(answered_yet(reader.asked) ? writer.asked : reader.asked, watching));
    auto& winner = answered_yet(reader.asked) ? reader : writer;
    auto& loser = &winner == &reader ? writer : reader;
    auto first = winner.asked.get();
    REQUIRE(first);
    first->release();
    auto second = loser.asked.get();
    REQUIRE(second);
    CHECK(second->token() > first->token());
    second->release();
  }
}

TEST_CASE("who lived when a name was freed by force is not told of as dead, though their rows were locked just then") {
  ServerDatabase database;
  auto engine = database->engine({.reentrance = Reentrance::none});
  auto forced = engine.lock("job", {.mode = Mode::shared, .lease = 10min, .renew = false});
  Admin other(database.server());
  other.run("BEGIN");
  REQUIRE(other.number("SELECT token FROM resource_lock_holder WHERE name = 'job' FOR UPDATE") > 0);
  auto forcing = std::async(std::launch::async, [&] { return engine.force_release("job", forced.token()); });
  CHECK(eventually([&] { return database->admin().owner("job").empty(); }));
  static_cast<void>(forcing.wait_for(300ms));  // longer than one try waits for a row
  other.run("ROLLBACK");
  CHECK(forcing.get());
  CHECK(database->admin().number("SELECT count(*) FROM resource_lock_holder WHERE name = 'job'") == 0);
  CHECK(forced.release() == Released::was_lost);
}

TEST_CASE("whose permit ends between two steps of one who comes in is taken out by the next, and each is told of") {
  for (const bool somebody_lives : {false, true})
    for (auto lease = 1s * slowness();; lease *= 2) {
      INFO("somebody else lives: " << somebody_lives);
      ServerDatabase database;
      auto engine = database->engine(patient());
      const LockOptions one_of_four{.mode = Mode::permits, .limit = 4, .lease = 10min, .renew = false};
      auto brief = one_of_four;
      brief.lease = lease;
      std::optional<Lock> alive;
      if (somebody_lives) alive = engine.lock("job", one_of_four);
      std::string owners[2];
      for (auto& owner : owners) owner = engine.lock("job", brief).detach().owner;
      std::ranges::sort(owners);  // so that the first has been looked at when the next comer stops at the second
      database->admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at WHERE owner = '" + owners[1] +
                            "'");
      Engine stopped(database.server().url_to_hold_writes(), patient());
      database.server().hold_writes("resource_lock_holder", "UPDATE");
      auto asked = std::async(std::launch::async, [&] { return stopped.try_lock("job", one_of_four); });
      REQUIRE(eventually([&] { return database.server().holding_back(); }));
      const std::size_t left = somebody_lives ? 1 : 0;
      const bool stopped_before = engine.sharers("job").size() > left;
      REQUIRE(eventually([&] { return engine.sharers("job").size() == left; }));
      database.server().let_go();
      const auto next = asked.get();
      REQUIRE(next);
      if (!stopped_before && lease < 1min) continue;  // it came too late on a busy machine
      CHECK(stopped_before);
      CHECK(engine.try_lock("job", one_of_four));
      CHECK(engine.reap().abandoned == 2);
      CHECK(next->valid());
      break;
    }
}
