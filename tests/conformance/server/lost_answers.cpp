// The promise that a lost answer is resolved, not guessed: one grant, one release, no false loss.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Shaky {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  EventLog news{};
  Engine engine{database.server().url_at(proxy.address()),
                {.connections = 1,
                 .timeouts = {.request = 10s * slowness(), .release = 10s * slowness()},
                 .observer = news.observer()}};

  Shaky() { engine.try_lock("warm").reset(); }
};

}  // namespace

TEST_CASE("an acquire whose answer is lost is one grant, and the caller gets it") {
  Shaky shaky;
  for (const char* name : {"warm", "new"}) {
    const auto before = shaky.database->admin().token(name);
    shaky.proxy.lose_next_answer();
    auto lock = shaky.engine.try_lock(name);
    CHECK(shaky.proxy.lost_it());
    REQUIRE(lock);
    CHECK(lock->valid());
    CHECK(shaky.database->admin().owner(name) == lock->owner());
    CHECK(shaky.database->admin().token(name) == lock->token());
    if (number(before) > 0) CHECK(number(lock->token()) == number(before) + 1);
    CHECK(lock->release() == Released::freed);
  }
  CHECK(shaky.news.comes(Event::Kind::retried));
}

TEST_CASE("a busy answer that is lost is busy") {
  Shaky shaky;
  auto other = shaky.database->engine();
  const auto lock = other.try_lock("job");
  CHECK_FALSE(shaky.engine.try_lock("job"));
  shaky.proxy.lose_next_answer();
  CHECK_FALSE(shaky.engine.try_lock("job"));
  CHECK(shaky.proxy.lost_it());
}

TEST_CASE("a release whose answer is lost has freed, and says so") {
  Shaky shaky;
  auto lock = shaky.engine.try_lock("job");
  REQUIRE(lock);
  shaky.proxy.lose_next_answer();
  CHECK(lock->release() == Released::freed);
  CHECK(shaky.proxy.lost_it());
  CHECK(shaky.database->admin().held() == 0);
}

TEST_CASE("several names whose answer is lost are one grant each, and the caller gets them") {
  Shaky shaky;
  shaky.engine.lock_all({"a", "b", "c"}).release();
  for (std::size_t spared = 0; spared < 3; ++spared) {
    INFO(spared);
    shaky.proxy.lose_next_answer(spared);
    auto set = shaky.engine.try_lock_all({"a", "b", "c"});
    REQUIRE(set);
    CHECK(set->valid());
    for (const auto& lock : *set) {
      CHECK(shaky.database->admin().owner(lock.name()) == lock.owner());
      CHECK(shaky.database->admin().token(lock.name()) == lock.token());
    }
    CHECK(set->release() == Released::freed);
    CHECK(shaky.database->admin().held() == 0);
  }
}

TEST_CASE("several names whose answer is lost, and of which one turns out to be taken, are given back") {
  Shaky shaky;
  auto other = shaky.database->engine();
  shaky.engine.lock_all({"a", "b", "c"}).release();
  for (int turn = 0; turn < 5; ++turn) {
    std::optional<Lock> theirs;
    std::optional<LockSet> set;
    shaky.proxy.lose_next_answer(1);
    in_parallel(2, [&](int thread) {
      if (thread == 0) set = shaky.engine.try_lock_all({"a", "b", "c"});
      else theirs = other.try_lock("b");
    });
    CHECK_FALSE((set.has_value() && theirs.has_value()));
    set.reset();
    theirs.reset();
    CHECK(eventually([&] { return shaky.database->admin().held() == 0; }));
  }
}

TEST_CASE("several names whose answer is lost for good are held by nobody once the database is back") {
  Shaky shaky;
  auto engine = Engine(shaky.database.server().url_at(shaky.proxy.address()),
                       {.connections = 1, .timeouts = {.request = 500ms * slowness(), .release = 1s * slowness()}});
  engine.lock_all({"a", "b", "c"}).release();
  shaky.proxy.lose_next_answer_and_refuse(1);
  CHECK(thrown_by([&] { static_cast<void>(engine.try_lock_all({"a", "b", "c"})); }).fault.has_value());
  CHECK(shaky.proxy.lost_it());
  CHECK(shaky.database->admin().held() == 3);
  shaky.proxy.pass();
  CHECK(eventually([&] { return shaky.database->admin().held() == 0; }));
  CHECK(engine.try_lock_all({"a", "b", "c"}).has_value());
}

TEST_CASE("an extension whose answer is lost has extended") {
  Shaky shaky;
  auto lock = shaky.engine.try_lock("job");
  REQUIRE(lock);
  lock->extend(1min);
  shaky.proxy.lose_next_answer();
  lock->extend(1h);
  CHECK(shaky.proxy.lost_it());
  CHECK(lock->remaining() > 50min);
  CHECK(shaky.engine.inspect("job")->lease == 1h);
}

TEST_CASE("an adoption whose answer is lost has adopted, once") {
  Shaky shaky;
  auto other = shaky.database->engine();
  shaky.engine.adopt("warm", other.try_lock("warm")->detach())->release();  // prepares both of its statements
  const auto grant = other.try_lock("job")->detach();
  shaky.proxy.lose_next_answer(1);
  auto adopted = shaky.engine.adopt("job", grant);
  CHECK(shaky.proxy.lost_it());
  REQUIRE(adopted);
  CHECK(adopted->valid());
  CHECK(adopted->token() == grant.token);
  CHECK(shaky.database->admin().owner("job") == adopted->owner());
  CHECK_FALSE(other.adopt("job", grant));
  CHECK(adopted->release() == Released::freed);
}

TEST_CASE("an extension to less whose answer is lost has made trust shorter, and the row no shorter") {
  Shaky shaky;
  auto lock = shaky.engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  lock->extend(1h);
  shaky.proxy.lose_next_answer();
  const auto shorter = 5s * slowness();
  lock->extend(shorter);
  CHECK(shaky.proxy.lost_it());
  CHECK(lock->remaining() <= shorter);
  CHECK(shaky.engine.inspect("job")->left > 50min);
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("renewals whose answers are lost are no loss") {
  Shaky shaky;
  const auto lock = shaky.engine.try_lock("job", {.lease = 10min, .renew_every = 100ms});
  REQUIRE(lock);
  for (int i = 0; i < 3; ++i) {
    shaky.proxy.lose_next_answer();
    CHECK(eventually([&] { return shaky.proxy.lost_it(); }));
  }
  const auto end = shaky.database->admin().expires_at("job");
  CHECK(eventually([&] { return shaky.database->admin().expires_at("job") > end; }));
  CHECK_FALSE(lock->loss());
}

TEST_CASE("a forced release whose answer is lost is told as done") {
  Shaky shaky;
  auto other = shaky.database->engine();
  const auto token = other.try_lock("job")->detach().token;
  shaky.proxy.lose_next_answer();
  CHECK(shaky.engine.force_release("job", token));
  CHECK(shaky.proxy.lost_it());
  CHECK(number(shaky.database->admin().token("job")) == number(token) + 1);
}

TEST_CASE("metadata whose answer is lost is written, once, and no loss") {
  Shaky shaky;
  auto lock = shaky.engine.try_lock("job");
  REQUIRE(lock);
  lock->update_metadata("page 1", Keep::for_next);
  shaky.proxy.lose_next_answer();
  lock->update_metadata("page 2", Keep::for_next);
  CHECK(shaky.proxy.lost_it());
  const auto row = shaky.engine.inspect("job");
  REQUIRE(row);
  CHECK(row->metadata == "page 2");
  CHECK(row->kept == "page 2");
  CHECK(row->token == lock->token());
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("a removal whose answer is lost has removed, and its next token is larger") {
  Shaky shaky;
  Engine engine(shaky.database.server().url_at(shaky.proxy.address()),
                {.connections = 1, .timeouts = {.request = 10s * slowness()}, .reaper = {.grace = 1s * slowness()}});
  engine.try_lock("job").reset();
  const auto last = shaky.database->admin().token("job");
  auto removal = std::async(std::launch::async, [&] { return engine.remove("job"); });
  REQUIRE(eventually([&] { return shaky.database->admin().floor() >= last; }));
  shaky.proxy.lose_next_answer();
  const auto removed = removal.get();
  CHECK(shaky.proxy.lost_it());
  CHECK((removed == Removal::removed || removed == Removal::absent));
  CHECK_FALSE(shaky.database->admin().exists("job"));
  CHECK(shaky.engine.try_lock("job")->token() > last);
}
