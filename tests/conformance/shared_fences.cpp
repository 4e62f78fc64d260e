// The fence of those who share a name, readers and those who have permits: it proves that the holder itself still holds
// on, which the name that others hold beside it does not.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <optional>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// How one shares a name, beside somebody who goes on, and who comes in when its lease is over.
struct Way {
  const char* name;
  LockOptions mine, beside, next;
  bool beside_stays;  // when the next one comes in
};

LockOptions permits(std::int64_t limit, std::int64_t many = 1) {
  return {.mode = Mode::permits, .permits = many, .limit = limit, .lease = 1h, .renew = false};
}

const LockOptions reading{.mode = Mode::shared, .lease = 1h, .renew = false};
const LockOptions writing{.lease = 1h, .renew = false};

std::vector<Way> ways() {
  return {{"a reader, and then a writer", reading, reading, writing, false},
          {"a permit, and then another one in its place", permits(2), permits(2), permits(2), true},
          {"two permits, and then one of them", permits(3, 2), permits(3), permits(3), true},
          {"a permit, and then a writer", permits(2), permits(2), writing, false}};
}

// How a fence reaches the database.
enum class Means { native, runner, text };

struct Scene {
  Database database{};
  Engine engine = database.engine({.reentrance = Reentrance::none});
  Engine other = database.engine({.reentrance = Reentrance::none});
  Scene() { database.admin().run("CREATE TABLE app (n bigint)"); }

  long long stored() { return database.admin().number("SELECT count(*) FROM app"); }
  std::vector<Beginning> beginnings() { return database.test_database().beginnings(); }
  Lock take(Engine& from, const LockOptions& options) {
    auto lock = from.try_lock("a", options);
    REQUIRE(lock);
    return std::move(*lock);
  }
  // Its lease has just ended by the database's clock; those of others go on, and so does the name.
  void expire(const Lock& lock) {
    database.admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at WHERE owner = '" + lock.owner() +
                         "'");
  }
  Duration end_of(const Lock& lock) {
    return Duration{
        database.admin().number("SELECT expires_at FROM resource_lock_holder WHERE owner = '" + lock.owner() + "'")};
  }
};

// Whether the text of a fence proves anything in the transaction that is open.
bool proves(Caller& caller, const std::string& sql) {
  try {
    return caller.runner().run(sql) == std::vector<std::optional<std::string>>{"1"};
  } catch (const std::exception&) { return false; }
}

// Empty: it was fenced.
std::optional<Fault> refusal_of(Lock& lock, Caller& caller, Means means, const std::string& sql) {
  if (means == Means::text) return proves(caller, sql) ? std::nullopt : std::optional(Fault::lost);
  return thrown_by([&] { means == Means::native ? lock.fence(caller.native()) : lock.fence(caller.runner()); }).fault;
}

constexpr Means all_means[] = {Means::native, Means::runner, Means::text};

}  // namespace

TEST_CASE("who shares a name fences while it holds on, in every way there is, and has renewed its lease by that") {
  Scene scene;
  for (const auto& way : ways()) {
    for (const auto& beginning : scene.beginnings()) {
      for (const auto means : all_means) {
        INFO(way.name << ", " << beginning.name << ", means: " << static_cast<int>(means));
        const auto beside = scene.take(scene.other, way.beside);
        auto lock = scene.take(scene.engine, way.mine);
        const auto sql = lock.fence_sql();
        scene.database.admin().age("a", 30min);
        const auto end = scene.end_of(lock), others = scene.end_of(beside);
        const auto gate = scene.database.admin().expires_at("a");
        Caller caller(scene.database.test_database());
        caller.begin(beginning);
        CHECK_FALSE(refusal_of(lock, caller, means, sql));
        caller.run("ROLLBACK");
        CHECK(scene.end_of(lock) == end);
        CHECK(scene.database.admin().expires_at("a") == gate);
        const auto before = scene.stored();
        caller.begin(beginning);
        CHECK_FALSE(refusal_of(lock, caller, means, sql));
        caller.run("INSERT INTO app VALUES (1)");
        caller.run("COMMIT");
        CHECK(scene.stored() == before + 1);
        if (means != Means::text) CHECK(scene.end_of(lock) >= end + 29min);
        CHECK(scene.database.admin().expires_at("a") >= gate + 29min);
        CHECK(scene.end_of(beside) == others);
        CHECK(lock.valid());
        CHECK(lock.release() == Released::freed);
      }
    }
  }
}

TEST_CASE("with_fence of who shares a name begins, fences, works and commits") {
  Scene scene;
  for (const auto& way : ways()) {
    for (const bool native : {true, false}) {
      INFO(way.name << ", native: " << native);
      const auto beside = scene.take(scene.other, way.beside);
      auto lock = scene.take(scene.engine, way.mine);
      scene.database.admin().age("a", 30min);
      const auto end = scene.end_of(lock);
      const auto before = scene.stored();
      Caller caller(scene.database.test_database());
      const auto work = [&] { caller.run("INSERT INTO app VALUES (1)"); };
      if (native) lock.with_fence(caller.native(), work);
      else lock.with_fence(caller.runner(), work);
      CHECK(scene.stored() == before + 1);
      CHECK(scene.end_of(lock) >= end + 29min);
    }
  }
}

TEST_CASE(
    "who shared a name until its lease was over and somebody else came cannot commit, whoever goes on beside it") {
  Scene scene;
  for (const auto& way : ways()) {
    for (const auto& beginning : scene.beginnings()) {
      for (const auto means : all_means) {
        INFO(way.name << ", " << beginning.name << ", means: " << static_cast<int>(means));
        const auto beside = scene.take(scene.other, way.beside);
        auto lock = scene.take(scene.engine, way.mine);
        const auto sql = lock.fence_sql();
        if (way.beside_stays) scene.expire(lock);
        else scene.database.admin().expire("a");
        const auto next = scene.take(scene.other, way.next);
        const auto row = scene.database.admin().row("a");
        const auto others = scene.end_of(beside);
        Caller caller(scene.database.test_database());
        caller.begin(beginning);
        caller.run("INSERT INTO app VALUES (1)");
        CHECK(refusal_of(lock, caller, means, sql) == Fault::lost);
        if (means == Means::text) {
          caller.run("ROLLBACK");
        } else {
          CHECK_FALSE(lock.valid());
          CHECK(lock.loss());
          caller.run_anyway("COMMIT");
          CHECK(thrown_by([&] { static_cast<void>(lock.fence_sql()); }).fault == Fault::lost);
        }
        CHECK(scene.stored() == 0);
        // It has touched nobody's row.
        CHECK(scene.database.admin().row("a") == row);
        CHECK(scene.end_of(beside) == others);
        CHECK(next.valid());
      }
    }
  }
}

TEST_CASE("who shared a name that was released by force cannot commit, and with_fence never runs the work") {
  Scene scene;
  for (const auto& way : ways()) {
    for (const auto means : all_means) {
      INFO(way.name << ", means: " << static_cast<int>(means));
      auto lock = scene.take(scene.engine, way.mine);
      const auto sql = lock.fence_sql();
      CHECK(scene.other.force_release("a", scene.engine.inspect("a")->token));
      // Also where others of the same kind have come since.
      const auto next = scene.take(scene.other, way.mine);
      Caller caller(scene.database.test_database());
      caller.begin(scene.beginnings().front());
      caller.run("INSERT INTO app VALUES (1)");
      CHECK(refusal_of(lock, caller, means, sql) == Fault::lost);
      if (means == Means::text) caller.run("ROLLBACK");
      else caller.run_anyway("COMMIT");
      CHECK(scene.stored() == 0);
      Caller another(scene.database.test_database());
      bool ran = false;
      const auto work = [&] { ran = true; };
      CHECK(thrown_by([&] {
              means == Means::native ? lock.with_fence(another.native(), work)
                                     : lock.with_fence(another.runner(), work);
            }).fault == Fault::lost);
      CHECK_FALSE(ran);
      CHECK(next.valid());
    }
  }
}

TEST_CASE("who has given back its share of a name never fences, nor does its fence as text, while the others do") {
  Scene scene;
  for (const auto& way : ways()) {
    INFO(way.name);
    auto beside = scene.take(scene.other, way.beside);
    auto lock = scene.take(scene.engine, way.mine);
    const auto mine = lock.fence_sql(), others = beside.fence_sql();
    const auto proved = [&](const std::string& sql) {
      Caller caller(scene.database.test_database());
      caller.begin(scene.beginnings().front());
      const bool proven = proves(caller, sql);
      caller.run("ROLLBACK");
      return proven;
    };
    CHECK(proved(mine));
    CHECK(lock.release() == Released::freed);
    CHECK_FALSE(proved(mine));
    CHECK(proved(others));
    Caller caller(scene.database.test_database());
    caller.begin(scene.beginnings().front());
    CHECK(thrown_by([&] { lock.fence(caller.native()); }).fault == Fault::lost);
    CHECK(thrown_by([&] { static_cast<void>(lock.fence_sql()); }).fault == Fault::lost);
  }
}

TEST_CASE("whose lease is over, and whose place nobody has taken, may fence, and has its place by that") {
  Scene scene;
  for (const auto& way : ways()) {
    for (const auto& beginning : scene.beginnings()) {
      INFO(way.name << ", " << beginning.name);
      auto lock = scene.take(scene.engine, way.mine);
      scene.database.admin().expire("a");
      Caller caller(scene.database.test_database());
      caller.begin(beginning);
      lock.fence(caller.native());
      caller.run("COMMIT");
      CHECK(lock.valid());
      CHECK(scene.end_of(lock) > scene.database.admin().acquired_at("a") + 50min);
      CHECK_FALSE(scene.other.try_lock("a"));
      CHECK_FALSE(scene.other.try_lock("a", permits(1)));
      CHECK(lock.release() == Released::freed);
    }
  }
}

TEST_CASE(
    "while the fenced transaction of who has a permit is open nobody takes its place, although its lease is over") {
  Scene scene;
  auto engine = scene.database.engine({.reentrance = Reentrance::none, .bound_idle = false});
  auto other = scene.database.engine({.timeouts = {.request = time_in_vain()}});
  const auto unrenewed = 1s * slowness();
  auto options = permits(1);
  options.lease = unrenewed;
  Caller caller(scene.database.test_database());
  auto lock = scene.take(engine, options);
  caller.begin(scene.beginnings().front());
  lock.fence(caller.native());
  CHECK(eventually([&] { return lock.remaining() == Duration{}; }));
  CHECK(granted_nothing([&] { return other.try_lock_for("a", 2 * unrenewed, permits(1)).has_value(); }));
  caller.run("INSERT INTO app VALUES (1)");
  caller.run("COMMIT");
  CHECK(scene.stored() == 1);
  CHECK(answered([&] { return other.try_lock_for("a", far_longer(), permits(1)); }));
}

TEST_CASE("who shares a name and is forced out, reaped or replaced is told so, and never fences after that") {
  enum class End { forced, reaped, replaced };
  Scene scene;
  for (const auto& way : ways()) {
    for (const auto end : {End::forced, End::reaped, End::replaced}) {
      for (const auto means : all_means) {
        INFO(way.name << ", how it ended: " << static_cast<int>(end) << ", means: " << static_cast<int>(means));
        const auto beside = scene.take(scene.other, way.beside);
        auto mine = way.mine;
        mine.renew = true, mine.renew_every = 200ms;
        auto lock = scene.take(scene.engine, mine);
        const auto sql = lock.fence_sql();
        std::optional<Lock> next;
        // A renewal that comes first keeps it alive once more.
        if (end == End::forced) CHECK(scene.other.force_release("a", scene.engine.inspect("a")->token));
        if (end == End::reaped)
          CHECK(eventually([&] {
            scene.database.admin().age("a", 2h);
            static_cast<void>(scene.other.reap());
            return scene.end_of(lock) == Duration{};  // its own row, not that of who is beside it
          }));
        if (end == End::replaced)
          CHECK(eventually([&] {
            if (way.beside_stays) scene.expire(lock);
            else scene.database.admin().expire("a");
            next = scene.other.try_lock("a", way.next);
            return next.has_value();
          }));
        CHECK(eventually([&] { return lock.lost().stop_requested(); }));
        CHECK((lock.loss() == Loss::refused || lock.loss() == Loss::forced));
        CHECK_FALSE(lock.valid());
        CHECK(lock.remaining() == Duration{});
        CHECK(thrown_by([&] { lock.check(); }).fault == Fault::lost);
        Caller caller(scene.database.test_database());
        caller.begin(scene.beginnings().front());
        caller.run("INSERT INTO app VALUES (1)");
        CHECK(refusal_of(lock, caller, means, sql) == Fault::lost);
        if (means == Means::text) caller.run("ROLLBACK");
        else caller.run_anyway("COMMIT");
        CHECK(scene.stored() == 0);
        CHECK(lock.release() == Released::was_lost);
        if (next) CHECK(next->valid());
      }
    }
  }
}
