// The promise that a lost request is asked again, and that what cannot be resolved is called in doubt:
// then nothing is held that is not reported, or not for longer than its lease, and nothing is reported that is not
// held.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Its connection is idle afterwards: it has answered.
void warm(Engine& engine) {
  REQUIRE(eventually([&] { return engine.lock("warm").release() == Released::freed; }));
}

struct Shaky {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  EventLog news{};
  Engine engine;

  explicit Shaky(Duration patience = 10s * slowness())
      : engine(database.server().url_at(proxy.address()),
               {.connections = 1,
                .timeouts = {.request = patience, .release = std::max<Duration>(patience, 1s * slowness())},
                .observer = news.observer()}) {
    warm(engine);
  }
};

const Duration brief = 600ms * slowness();

}  // namespace

TEST_CASE("an acquire that never reached the database is asked again, and granted once") {
  Shaky shaky;
  for (const char* name : {"warm", "new"}) {
    const auto before = number(shaky.database->admin().token(name));
    shaky.proxy.lose_next_request();
    auto lock = shaky.engine.try_lock(name);
    CHECK(shaky.proxy.lost_it());
    REQUIRE(lock);
    CHECK(shaky.database->admin().owner(name) == lock->owner());
    if (before > 0) CHECK(number(lock->token()) == before + 1);
    CHECK(lock->release() == Released::freed);
  }
  CHECK(shaky.news.comes(Event::Kind::retried));
}

TEST_CASE("a release, an extension and a forced release that never reached the database are asked again") {
  Shaky shaky;
  auto lock = shaky.engine.try_lock("job", {.lease = 1min});
  REQUIRE(lock);
  shaky.proxy.lose_next_request();
  lock->extend(1h);
  CHECK(shaky.proxy.lost_it());
  CHECK(shaky.engine.inspect("job")->lease == 1h);
  shaky.proxy.lose_next_request();
  CHECK(lock->release() == Released::freed);
  CHECK(shaky.proxy.lost_it());
  CHECK(shaky.database->admin().held() == 0);
  auto other = shaky.database->engine();
  const auto token = other.try_lock("job")->detach().token;
  shaky.proxy.lose_next_request();
  CHECK(shaky.engine.force_release("job", token));
  CHECK(shaky.proxy.lost_it());
  CHECK(number(shaky.database->admin().token("job")) == number(token) + 1);
}

TEST_CASE("renewals that never reach the database are no loss") {
  Shaky shaky;
  const auto lock = shaky.engine.try_lock("job", {.lease = 10min, .renew_every = 100ms});
  REQUIRE(lock);
  for (int i = 0; i < 3; ++i) {
    shaky.proxy.lose_next_request();
    CHECK(eventually([&] { return shaky.proxy.lost_it(); }));
  }
  const auto end = shaky.database->admin().expires_at("job");
  CHECK(eventually([&] { return shaky.database->admin().expires_at("job") > end; }));
  CHECK_FALSE(lock->loss());
}

TEST_CASE("an acquire that stays without an answer is in doubt, keeps others out, and is given back") {
  Shaky shaky(brief);
  auto other = shaky.database->engine();
  shaky.proxy.lose_next_answer_and_refuse();
  const Stopwatch time;
  CHECK(thrown_by([&] { shaky.engine.try_lock("job", {.lease = 10min}); }).fault == Fault::in_doubt);
  CHECK(time.elapsed() < brief + 2s * slowness());
  CHECK_FALSE(other.try_lock("job"));  // it was granted: nobody else has it
  shaky.proxy.pass();
  CHECK(eventually([&] { return shaky.database->admin().held() == 0; }));  // long before its lease
}

TEST_CASE("behind TLS an acquire that stays without an answer is in doubt, keeps others out, and is given back") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->test_database());
  Proxy proxy(database.server());
  Engine engine(database.server().url_with_tls_at(proxy.address()), {.connections = 1, .timeouts = {.request = brief}});
  auto other = database->engine();
  warm(engine);
  proxy.swallow_answers();
  CHECK(thrown_by([&] { engine.try_lock("job", {.lease = 10min}); }).fault == Fault::in_doubt);
  CHECK(eventually([&] { return !database->admin().owner("job").empty(); }));
  CHECK_FALSE(other.try_lock("job"));
  proxy.cut();
  proxy.pass();
  CHECK(eventually([&] { return database->admin().held() == 0; }));
}

TEST_CASE("an acquire that stays without an answer and an engine that is gone hold for no longer than the lease") {
  ServerDatabase database;
  Proxy proxy(database.server());
  const auto lease = 2s * slowness();
  {
    Engine engine(database.server().url_at(proxy.address()), {.connections = 1, .timeouts = {.request = brief}});
    warm(engine);
    proxy.lose_next_answer_and_refuse();
    CHECK(thrown_by([&] { engine.try_lock("job", {.lease = lease}); }).fault == Fault::in_doubt);
  }
  auto other = database->engine({.polling = {.longest = 50ms}});
  const Stopwatch time;
  CHECK(other.try_lock_for("job", 2min));
  CHECK(time.elapsed() < lease + 2s * slowness());
}

TEST_CASE("a release that stays without an answer is unconfirmed, and is done once the database is back") {
  Shaky shaky(brief);
  auto lock = shaky.engine.try_lock("job", {.lease = 1h});
  auto late = shaky.engine.try_lock("late", {.lease = 1h});
  REQUIRE(lock);
  REQUIRE(late);
  shaky.proxy.lose_next_answer_and_refuse();
  CHECK(lock->release() == Released::unconfirmed);  // it has freed, but nobody said so
  CHECK(late->release() == Released::unconfirmed);  // it has not
  CHECK_FALSE(lock->valid());
  shaky.proxy.pass();
  CHECK(eventually([&] { return shaky.database->admin().held() == 0; }));
}

TEST_CASE("an extension that stays without an answer is in doubt, and trust is what it was") {
  Shaky shaky(brief);
  auto lock = shaky.engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  lock->extend(1h);  // prepared by that: what is lost next is the answer of an extension
  shaky.proxy.lose_next_answer_and_refuse();
  CHECK(thrown_by([&] { lock->extend(3h); }).fault == Fault::in_doubt);
  CHECK(lock->valid());
  CHECK(lock->remaining() < 1h);
  shaky.proxy.pass();
  lock->extend(2h);
  CHECK(lock->remaining() > 1h);
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("an extension to less that stays without an answer is in doubt, and its holder is the only one") {
  Shaky shaky(brief);
  auto other = shaky.database->engine({.reentrance = Reentrance::none});
  auto lock = shaky.engine.try_lock("job", {.lease = 1min, .renew = false});
  REQUIRE(lock);
  lock->extend(1min);  // prepared by that
  shaky.proxy.lose_next_answer_and_refuse();
  CHECK(thrown_by([&] { lock->extend(700ms); }).fault == Fault::in_doubt);
  CHECK(lock->remaining() <= 700ms);
  while (lock->valid()) CHECK_FALSE(other.try_lock("job"));
  CHECK(lock->loss() == Loss::unconfirmed);
  shaky.proxy.pass();
  lock.reset();
  CHECK(other.try_lock_for("job", 30s));
}

TEST_CASE("an adoption that stays without an answer is in doubt, and who asks again through the same engine has it") {
  Shaky shaky(brief);
  auto other = shaky.database->engine();
  shaky.engine.adopt("warm", other.try_lock("warm")->detach())->release();
  for (const bool carried_out : {true, false}) {
    INFO("carried out: " << carried_out);
    const auto grant = other.try_lock("job", {.lease = 10min})->detach();
    if (carried_out) {
      shaky.proxy.lose_next_answer_and_refuse(1);
      CHECK(thrown_by([&] { static_cast<void>(shaky.engine.adopt("job", grant)); }).fault == Fault::in_doubt);
      CHECK_FALSE(other.adopt("job", grant));
    } else {
      shaky.proxy.refuse();
      CHECK(thrown_by([&] { static_cast<void>(shaky.engine.adopt("job", grant)); }).fault);
    }
    shaky.proxy.pass();
    auto adopted = shaky.engine.adopt("job", grant);
    REQUIRE(adopted);
    CHECK(adopted->valid());
    CHECK(shaky.database->admin().owner("job") == adopted->owner());
    CHECK_FALSE(shaky.engine.adopt("job", grant));  // it has been given out
    CHECK(adopted->release() == Released::freed);
  }
}

TEST_CASE("a request that could not be sent is not in doubt") {
  Shaky shaky(brief);
  shaky.proxy.refuse();
  CHECK(thrown_by([&] { shaky.engine.inspect("job"); }).fault);  // the connection is found to be gone
  CHECK(thrown_by([&] { shaky.engine.try_lock("job"); }).fault == Fault::unavailable);
  CHECK_FALSE(shaky.database->admin().exists("job"));
}
