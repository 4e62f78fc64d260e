// What becomes of a lock that is made shared, or exclusive again, when a request or its answer is lost, or comes late:
// never two writers, no writer beside a reader, and nothing is held by nobody for longer than its lease.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Conversion {
  std::string_view name;
  Mode from, to;

  // Whether it was made.
  bool make(Lock& lock) const {
    if (to == Mode::exclusive) return lock.try_upgrade();
    lock.downgrade();
    return true;
  }
};

constexpr Conversion conversions[] = {{"downgrade", Mode::exclusive, Mode::shared},
                                      {"upgrade", Mode::shared, Mode::exclusive}};

const Duration brief = 600ms * slowness();

// Who converts asks through a proxy, and others look at what they are let in as, in peace.
struct Shaky {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  std::optional<Engine> engine;
  Engine other = database->engine({.reentrance = Reentrance::none, .polling = {.longest = 50ms}});
  Lock lock{};

  explicit Shaky(const Conversion& way, Duration patience = 10s * slowness(), Duration lease = 10min)
      : engine(std::in_place, database.server().url_at(proxy.address()),
               EngineOptions{
                   .reentrance = Reentrance::none,
                   .connections = 1,
                   .timeouts = {.request = patience, .release = std::max<Duration>(patience, 1s * slowness())}}) {
    // What is lost next is the answer of a conversion, and not that of its preparation.
    auto warm = engine->lock("warm", {.lease = 10min});
    warm.downgrade();
    REQUIRE(warm.try_upgrade());
    warm.release();
    engine->lock("warm", {.mode = Mode::shared, .lease = 10min}).release();
    REQUIRE(eventually([&] { return database->admin().owner("warm").empty(); }));
    static_cast<void>(engine->inspect("warm"));  // behind whatever else was under way on its connection
    lock = engine->lock("job", {.mode = way.from, .lease = lease});
  }

  std::optional<Lock> come(Mode mode) { return other.try_lock("job", {.mode = mode, .lease = 10min}); }
  // Where nobody is in the way for long: what arrives late has the row locked for a moment.
  std::optional<Lock> come_in(Mode mode) {
    return answered([&] { return other.try_lock_for("job", far_longer(), {.mode = mode, .lease = 10min}); });
  }
  long long readers() {
    return database->admin().number("SELECT count(*) FROM resource_lock_holder WHERE name = 'job' AND token > 0");
  }
  void check_that_it_is_held(Mode mode) {
    const auto row = other.inspect("job");
    REQUIRE(row);
    CHECK(row->state == State::held);
    CHECK(row->mode == mode);
    CHECK(readers() == (mode == Mode::shared ? 1 : 0));
    CHECK_FALSE(come(Mode::exclusive));
    CHECK(come(Mode::shared).has_value() == (mode == Mode::shared));
  }
  void check_that_it_is_lost() {
    CHECK_FALSE(lock.valid());
    CHECK(lock.lost().stop_requested());
    CHECK(lock.loss() == Loss::unconfirmed);
  }
  bool is_free() { return database->admin().owner("job").empty() && readers() == 0; }
  void check_that_anybody_comes_in() {
    CHECK(is_free());
    CHECK(come_in(Mode::exclusive));
    CHECK(come_in(Mode::shared));
  }
};

// Tries to write, again and again.
class Rival {
 public:
  explicit Rival(Engine& engine)
      : thread_([this, &engine](const std::stop_token& stop) {
          for (; !stop.stop_requested(); ++tries_)
            if (answered([&] { return engine.try_lock("job"); })) ++entered_;
        }) {}
  // After one more try at least, that began later than this.
  int entered() {
    const auto before = tries_.load();
    CHECK(eventually([&] { return tries_ > before + 1; }));
    return entered_;
  }

 private:
  std::atomic<int> tries_{0}, entered_{0};
  std::jthread thread_;
};

}  // namespace

TEST_CASE("a conversion whose answer or request is lost is made once, and no writer comes in meanwhile") {
  for (const auto& way : conversions) {
    for (const bool request : {false, true}) {
      INFO(way.name << ", the request is lost: " << request);
      Shaky shaky(way);
      const auto before = shaky.lock.token();
      {
        Rival rival(shaky.other);
        CHECK(rival.entered() == 0);
        if (request) shaky.proxy.lose_next_request();
        else shaky.proxy.lose_next_answer();
        CHECK(way.make(shaky.lock));
        CHECK(shaky.proxy.lost_it());
        CHECK(rival.entered() == 0);
      }
      CHECK(shaky.lock.valid());
      CHECK(shaky.lock.token() > before);
      CHECK_FALSE(shaky.lock.loss());
      CHECK(shaky.other.inspect("job")->token == shaky.lock.token());
      shaky.check_that_it_is_held(way.to);
      shaky.lock.extend(1h);
      CHECK(shaky.lock.release() == Released::freed);
      shaky.check_that_anybody_comes_in();
    }
  }
}

TEST_CASE("a conversion that stays without an answer is in doubt and a loss, keeps writers out, and is given back") {
  for (const auto& way : conversions) {
    INFO(way.name);
    Shaky shaky(way, brief);
    shaky.proxy.lose_next_answer_and_refuse();
    const Stopwatch time;
    CHECK(thrown_by([&] { way.make(shaky.lock); }).fault == Fault::in_doubt);
    CHECK(time.elapsed() < brief + 2s * slowness());
    CHECK(shaky.proxy.lost_it());
    shaky.check_that_it_is_lost();
    shaky.check_that_it_is_held(way.to);  // it was made, and nobody said so
    shaky.proxy.pass();
    CHECK(eventually([&] { return shaky.is_free(); }));  // long before its lease
    CHECK(shaky.lock.release() == Released::was_lost);
    shaky.check_that_anybody_comes_in();
  }
}

TEST_CASE("readers who came in after a downgrade in doubt stay when that is given back, and keep writers out") {
  Shaky shaky(conversions[0], brief);
  shaky.proxy.lose_next_answer_and_refuse();
  CHECK(thrown_by([&] { shaky.lock.downgrade(); }).fault == Fault::in_doubt);
  auto beside = shaky.come_in(Mode::shared);
  REQUIRE(beside);
  CHECK(shaky.readers() == 2);
  shaky.proxy.pass();
  CHECK(eventually([&] { return shaky.readers() == 1; }));
  beside->extend(20min);
  CHECK(beside->valid());
  CHECK_FALSE(shaky.come(Mode::exclusive));
  CHECK(beside->release() == Released::freed);
  shaky.check_that_anybody_comes_in();
}

TEST_CASE("who asked to write beside other readers, and whose answer is lost, gives its own place back, and no other") {
  Shaky shaky(conversions[1]);
  auto beside = shaky.come_in(Mode::shared);
  REQUIRE(beside);
  shaky.proxy.lose_next_answer();
  CHECK(thrown_by([&] { shaky.lock.try_upgrade(); }).fault == Fault::lost);
  CHECK(shaky.proxy.lost_it());
  shaky.check_that_it_is_lost();
  CHECK(eventually([&] { return shaky.readers() == 1; }));
  beside->extend(20min);
  CHECK_FALSE(shaky.come(Mode::exclusive));
  CHECK(shaky.come(Mode::shared));
  CHECK(beside->release() == Released::freed);
  shaky.check_that_anybody_comes_in();
}

TEST_CASE("where nothing could be sent a reader reads on, and a writer that was to read is lost and given back") {
  for (const auto& way : conversions) {
    INFO(way.name);
    Shaky shaky(way, brief);
    shaky.proxy.refuse();
    CHECK(thrown_by([&] { static_cast<void>(shaky.engine->inspect("job")); }).fault);  // its connection is gone
    CHECK(thrown_by([&] { way.make(shaky.lock); }).fault == Fault::unavailable);
    shaky.check_that_it_is_held(way.from);
    if (way.to == Mode::shared) {
      shaky.check_that_it_is_lost();
      shaky.proxy.pass();
      CHECK(eventually([&] { return shaky.is_free(); }));
    } else {
      CHECK(shaky.lock.valid());
      CHECK_FALSE(shaky.lock.loss());
      shaky.proxy.pass();
      REQUIRE(eventually([&] { return !thrown_by([&] { static_cast<void>(shaky.engine->inspect("job")); }).fault; }));
      CHECK(shaky.lock.try_upgrade());
      shaky.check_that_it_is_held(Mode::exclusive);
      CHECK(shaky.lock.release() == Released::freed);
    }
    shaky.check_that_anybody_comes_in();
  }
}

TEST_CASE(
    "a conversion that arrives late, after another attempt or a loss, changes nothing, whoever has the name by then") {
  enum class There { itself, writer, reader, nobody };
  for (const auto& way : conversions) {
    for (const bool again : {true, false}) {
      for (const auto there : {There::itself, There::writer, There::reader, There::nobody}) {
        if (!again && there == There::itself) continue;
        INFO(way.name << ", asked again: " << again << ", who is there: " << static_cast<int>(there));
        // Who asks again needs time for both trips within one call, on a crowded machine as well.
        Shaky shaky(way, (again ? 2s : 400ms) * slowness());
        if (again) {
          shaky.proxy.hold_next_request();
          CHECK(way.make(shaky.lock));
          CHECK(shaky.lock.valid());
          if (there != There::itself) CHECK(shaky.lock.release() == Released::freed);
        } else {
          shaky.proxy.hold_next_request_and_refuse();
          CHECK(thrown_by([&] { way.make(shaky.lock); }).fault == Fault::in_doubt);
          shaky.check_that_it_is_lost();
          shaky.proxy.pass();
        }
        REQUIRE(shaky.proxy.holds());
        if (there != There::itself) REQUIRE(eventually([&] { return shaky.is_free(); }));
        std::optional<Lock> next;
        if (there == There::writer || there == There::reader) {
          next = shaky.come_in(there == There::writer ? Mode::exclusive : Mode::shared);
          REQUIRE(next);
        }
        // That it was given up is noted in the row, maybe later than it was freed.
        const auto owner = shaky.database->admin().owner("job");
        const auto token = shaky.database->admin().token("job");
        const auto readers = shaky.readers();
        shaky.proxy.let_held_go();
        REQUIRE(eventually([&] { return shaky.proxy.held_was_answered(); }));
        CHECK(shaky.database->admin().owner("job") == owner);
        CHECK(shaky.database->admin().token("job") == token);
        CHECK(shaky.readers() == readers);
        if (there == There::itself) next = std::move(shaky.lock);
        if (next) {
          next->extend(20min);
          CHECK(next->release() == Released::freed);
        }
        shaky.check_that_anybody_comes_in();
      }
    }
  }
}

TEST_CASE("who converted, got no answer and is gone holds the name for no longer than its lease, and not less") {
  for (const auto& way : conversions) {
    INFO(way.name);
    const auto lease = 2s * slowness();
    Shaky shaky(way, brief, lease);
    shaky.proxy.lose_next_answer_and_refuse();
    const Stopwatch since_before;
    CHECK(thrown_by([&] { way.make(shaky.lock); }).fault == Fault::in_doubt);
    shaky.lock.release();
    shaky.engine.reset();
    CHECK(answered([&] { return shaky.other.try_lock_for("job", far_longer()); }));
    CHECK(since_before.elapsed() >= lease);
    CHECK(since_before.elapsed() < lease + brief + 2s * slowness());
    shaky.proxy.pass();
  }
}
