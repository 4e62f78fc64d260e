// What several hold together when a request or its answer is lost, or comes late: one grant and one release each, in
// doubt no more than others beside it, and as many permits as there are.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <future>
#include <optional>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// A mode in which others hold the name beside one, and who is kept out as long as it does.
struct Way {
  const char* name;
  LockOptions mine, kept_out;
};

std::vector<Way> ways() {
  const LockOptions reader{.mode = Mode::shared, .lease = 10min};
  const LockOptions permit{.mode = Mode::permits, .limit = 2, .lease = 10min};
  return {{"a reader", reader, {.lease = 10min}}, {"a permit", permit, permit}};
}

const Duration brief = 600ms * slowness();

// One that asks through a proxy, and another one that holds the name beside it, in peace.
struct Shaky {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Way way;
  Engine engine, other = database->engine({.reentrance = Reentrance::none});
  std::optional<Lock> beside{};

  explicit Shaky(Way chosen, Duration patience = 10s * slowness())
      : way(std::move(chosen)),
        engine(database.server().url_at(proxy.address()),
               {.reentrance = Reentrance::none,
                .connections = 1,
                .timeouts = {.request = patience, .release = std::max<Duration>(patience, 1s * slowness())}}) {
    auto warm = engine.lock("warm", way.mine);
    warm.extend(20min);
    warm.release();
    beside = other.try_lock("job", way.mine);
    REQUIRE(beside);
  }

  long long holders(std::string_view owner = {}) {
    std::string sql = "SELECT count(*) FROM resource_lock_holder WHERE name = 'job' AND token > 0";
    if (!owner.empty()) sql += " AND owner = '" + std::string(owner) + "'";
    return database->admin().number(sql);
  }
  bool kept_out() { return !other.try_lock("job", way.kept_out); }
  // One place is free beside `beside`, and no more than one.
  void check_that_one_place_is_free() {
    CHECK(holders() == 1);
    auto next = other.try_lock("job", way.mine);
    REQUIRE(next);
    CHECK(kept_out());
    next->release();
    CHECK(beside->valid());
    CHECK(beside->release() == Released::freed);
    CHECK(database->admin().held() == 0);
  }
};

}  // namespace

TEST_CASE("who shares a name, and whose answer or request is lost, is granted it once") {
  for (const auto& way : ways()) {
    for (const bool request : {false, true}) {
      INFO(way.name << ", the request is lost: " << request);
      Shaky shaky(way);
      if (request) shaky.proxy.lose_next_request();
      else shaky.proxy.lose_next_answer();
      auto lock = shaky.engine.try_lock("job", way.mine);
      CHECK(shaky.proxy.lost_it());
      REQUIRE(lock);
      CHECK(lock->valid());
      CHECK(lock->token() > shaky.beside->token());
      CHECK(shaky.holders() == 2);
      CHECK(shaky.holders(lock->owner()) == 1);
      CHECK(shaky.kept_out());
      CHECK(lock->release() == Released::freed);
      shaky.check_that_one_place_is_free();
    }
  }
}

TEST_CASE("who wants to share a name, and whose answer that it is busy is lost, is told again that it is busy") {
  for (const auto& way : ways()) {
    INFO(way.name);
    Shaky shaky(way);
    shaky.beside->release();
    auto alone = shaky.other.try_lock("job", {.lease = 10min});
    REQUIRE(alone);
    CHECK_FALSE(shaky.engine.try_lock("job", way.mine));
    shaky.proxy.lose_next_answer();
    CHECK_FALSE(shaky.engine.try_lock("job", way.mine));
    CHECK(shaky.proxy.lost_it());
    CHECK(shaky.holders() == 0);
    CHECK(shaky.database->admin().owner("job") == alone->owner());
  }
}

TEST_CASE("who gives back its share of a name, and whose answer or request is lost, has freed it, and nobody else's") {
  for (const auto& way : ways()) {
    for (const bool request : {false, true}) {
      INFO(way.name << ", the request is lost: " << request);
      Shaky shaky(way);
      auto lock = shaky.engine.try_lock("job", way.mine);
      REQUIRE(lock);
      if (request) shaky.proxy.lose_next_request();
      else shaky.proxy.lose_next_answer();
      CHECK(lock->release() == Released::freed);
      CHECK(shaky.proxy.lost_it());
      shaky.check_that_one_place_is_free();
    }
  }
}

TEST_CASE("an extension and renewals of who shares a name, whose answers or requests are lost, are no loss") {
  for (const auto& way : ways()) {
    for (const bool request : {false, true}) {
      INFO(way.name << ", the request is lost: " << request);
      Shaky shaky(way);
      auto options = way.mine;
      options.renew_every = 100ms;
      auto lock = shaky.engine.try_lock("job", options);
      REQUIRE(lock);
      const auto lose = [&] { request ? shaky.proxy.lose_next_request() : shaky.proxy.lose_next_answer(); };
      const auto end = [&] {
        return shaky.database->admin().number("SELECT expires_at FROM resource_lock_holder WHERE owner = '" +
                                              lock->owner() + "'");
      };
      for (int round = 0; round < 3; ++round) {
        lose();
        CHECK(eventually([&] { return shaky.proxy.lost_it(); }));
      }
      const auto renewed = end();
      CHECK(eventually([&] { return end() > renewed; }));
      lose();
      lock->extend(1h);
      CHECK(lock->remaining() > 50min);
      CHECK_FALSE(lock->loss());
      CHECK(lock->release() == Released::freed);
      shaky.check_that_one_place_is_free();
    }
  }
}

TEST_CASE("who asked to share a name and got no answer is in doubt, keeps others out, and gives back its own place") {
  for (const auto& way : ways()) {
    INFO(way.name);
    Shaky shaky(way, brief);
    if (way.mine.mode == Mode::shared) shaky.beside->release();  // else a writer would be kept out by that
    shaky.proxy.lose_next_answer_and_refuse();
    const Stopwatch time;
    CHECK(thrown_by([&] { static_cast<void>(shaky.engine.try_lock("job", way.mine)); }).fault == Fault::in_doubt);
    CHECK(time.elapsed() < brief + 2s * slowness());
    CHECK(shaky.kept_out());
    shaky.proxy.pass();
    if (way.mine.mode == Mode::shared) {  // long before its lease
      CHECK(eventually([&] { return shaky.database->admin().held() == 0; }));
    } else {
      CHECK(eventually([&] { return shaky.holders() == 1; }));
      shaky.check_that_one_place_is_free();
    }
  }
}

TEST_CASE("who asked to share a name, got no answer and is gone keeps its place for no longer than its lease") {
  for (const auto& way : ways()) {
    INFO(way.name);
    Shaky shaky(way);
    if (way.mine.mode == Mode::shared) shaky.beside->release();
    const auto lease = 2s * slowness();
    auto options = way.mine;
    options.lease = lease;
    const Stopwatch since_before;
    {
      Engine engine(shaky.database.server().url_at(shaky.proxy.address()),
                    {.reentrance = Reentrance::none, .connections = 1, .timeouts = {.request = brief}});
      engine.lock("warm", options).release();
      shaky.proxy.lose_next_answer_and_refuse();
      CHECK(thrown_by([&] { static_cast<void>(engine.try_lock("job", options)); }).fault == Fault::in_doubt);
    }
    auto next = shaky.database->engine({.reentrance = Reentrance::none, .polling = {.longest = 50ms}});
    const Stopwatch time;
    CHECK(next.try_lock_for("job", 2min, way.kept_out));
    CHECK(since_before.elapsed() >= lease);
    CHECK(time.elapsed() < lease + 2s * slowness());
    shaky.proxy.pass();
  }
}

TEST_CASE("who gave back its share and got no answer is unconfirmed, and has done so once the database is back") {
  for (const auto& way : ways()) {
    INFO(way.name);
    Shaky shaky(way, brief);
    auto lock = shaky.engine.try_lock("job", way.mine), late = shaky.engine.try_lock("late", way.mine);
    REQUIRE((lock && late));
    shaky.proxy.lose_next_answer_and_refuse();
    CHECK(lock->release() == Released::unconfirmed);  // it has freed, but nobody said so
    CHECK(late->release() == Released::unconfirmed);  // it has not
    CHECK_FALSE(lock->valid());
    CHECK_FALSE(shaky.database->admin().owner("late").empty());
    shaky.proxy.pass();
    CHECK(eventually([&] { return shaky.database->admin().owner("late").empty(); }));
    shaky.check_that_one_place_is_free();
  }
}

TEST_CASE("an attempt to share a name that arrives after its grant was given back takes no place") {
  for (const auto& way : ways()) {
    INFO(way.name);
    Shaky shaky(way, 400ms * slowness());
    shaky.proxy.hold_next_request();
    auto lock = shaky.engine.try_lock_for("job", 60s, way.mine);
    REQUIRE(lock);
    REQUIRE(shaky.proxy.holds());
    CHECK(lock->release() == Released::freed);
    REQUIRE(eventually([&] { return shaky.holders() == 1; }));
    shaky.proxy.let_held_go();
    REQUIRE(eventually([&] { return shaky.proxy.held_was_answered(); }));
    CHECK(shaky.holders(lock->owner()) == 0);
    shaky.check_that_one_place_is_free();
  }
}

TEST_CASE("a late release of a share takes nobody's place, nor that of who came after") {
  for (const auto& way : ways()) {
    INFO(way.name);
    Shaky shaky(way, 400ms * slowness());
    auto lock = shaky.engine.try_lock("job", way.mine);
    REQUIRE(lock);
    shaky.proxy.hold_next_request();
    const auto released = lock->release();
    CHECK((released == Released::unconfirmed || released == Released::freed));
    REQUIRE(shaky.proxy.holds());
    auto next = answered([&] { return shaky.other.try_lock_for("job", 60s, way.mine); });
    REQUIRE(next);
    REQUIRE(eventually([&] { return shaky.holders(lock->owner()) == 0; }));
    const auto row = shaky.database->admin().row("job");
    shaky.proxy.let_held_go();
    REQUIRE(eventually([&] { return shaky.proxy.held_was_answered(); }));
    CHECK(shaky.database->admin().row("job") == row);
    CHECK(shaky.holders() == 2);
    CHECK(next->release() == Released::freed);
    shaky.check_that_one_place_is_free();
  }
}

TEST_CASE("who waits to share a name is granted it once, whichever of its requests or answers is lost on the way") {
  constexpr std::size_t phases = 5;
  for (const auto& way : ways()) {
    for (const auto fairness : {Fairness::barging, Fairness::fifo}) {
      Shaky shaky(way);
      CHECK(shaky.beside->release() == Released::freed);
      Engine engine(shaky.database.server().url_at(shaky.proxy.address()),
                    {.reentrance = Reentrance::none,
                     .connections = 1,
                     .timeouts = {.request = 10s * slowness(), .release = 10s * slowness()},
                     .polling = {.longest = 50ms}});
      auto options = way.mine;
      options.fairness = fairness;
      engine.lock("warm", options).release();
      // An answer of its line, another one while it waits, or one of those that follow the release that it waits for.
      for (std::size_t phase = 0; phase < 2 * phases; ++phase) {
        INFO(way.name << ", " << to_string(fairness) << ", phase " << phase);
        auto alone = shaky.other.try_lock("job", {.lease = 10min});
        REQUIRE(alone);
        const bool waits = phase < phases;
        if (waits) shaky.proxy.lose_next_answer(phase);
        auto waiting = std::async(std::launch::async, [&] { return engine.try_lock_for("job", 4min, options); });
        if (waits) {
          CHECK(eventually([&] { return shaky.proxy.lost_it(); }));
        } else {
          CHECK(eventually([&] {
            return shaky.database->admin().number(
                       "SELECT count(*) FROM resource_lock WHERE name = 'job' AND wanted_until > 0") > 0;
          }));
          shaky.proxy.lose_next_answer(phase - phases);
        }
        CHECK(shaky.holders() == 0);
        CHECK(alone->valid());
        CHECK(alone->release() == Released::freed);
        auto lock = waiting.get();
        REQUIRE(lock);
        CHECK(lock->valid());
        CHECK(lock->token() > alone->token());
        CHECK(shaky.holders() == 1);
        CHECK(shaky.holders(lock->owner()) == 1);
        CHECK(eventually(
            [&] { return shaky.database->admin().number("SELECT count(*) FROM resource_lock_waiter") == 0; }));
        CHECK(lock->release() == Released::freed);
        CHECK(shaky.holders() == 0);
        CHECK(shaky.database->admin().owner("job").empty());
        shaky.proxy.pass();
        shaky.database->admin().run("UPDATE resource_lock SET wanted_until = 0 WHERE name = 'job'");
      }
    }
  }
}
