// Tests that a grant can be handed on by its name, owner and token, to one taker.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <array>
#include <set>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a detached lease stays held, is not renewed, and ends by its time") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job", renewed_often());
  const auto renewed = engine.try_lock("renewed", renewed_often());
  REQUIRE(lock);
  REQUIRE(renewed);
  CHECK(lock->grant() == Grant{lock->token(), lock->owner()});
  const auto grant = lock->detach();
  CHECK(grant == lock->grant());
  lock.reset();
  const auto a_few_renewals = [&] {
    const auto begun = database.admin().expires_at("renewed");
    return eventually([&] { return database.admin().expires_at("renewed") > begun + 200ms; });
  };
  CHECK(a_few_renewals());  // one of both may have been on its way
  const auto row = database.admin().row("job");
  CHECK(a_few_renewals());
  CHECK(database.admin().row("job") == row);
  database.admin().age("job", 9min);
  CHECK_FALSE(engine.try_lock("job"));
  database.admin().age("job", 1min);
  const auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(next->token() > grant.token);
}

TEST_CASE("who adopts a lease holds it: renewed, under the same token and another owner, until released") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine({.node = "another node", .label = "another"});
  const auto lease = 10min;
  const auto grant = engine.try_lock("job", {.lease = lease, .metadata = "of the first"})->detach();
  auto adopted = other.adopt("job", grant, {.renew_every = 20ms});
  REQUIRE(adopted);
  CHECK(adopted->token() == grant.token);
  CHECK(adopted->owner() != grant.owner);
  CHECK(database.admin().owner("job") == adopted->owner());
  CHECK(adopted->valid());
  const auto holder = other.inspect("job");
  REQUIRE(holder);
  CHECK(holder->lease == lease);
  CHECK(holder->node == "another node");
  CHECK(holder->label == "another");
  CHECK(holder->metadata == "of the first");
  const auto first = database.admin().expires_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > first + 200ms; }));
  CHECK(adopted->release() == Released::freed);
}

TEST_CASE("adopting can give the lease another length, and other words") {
  Database database;
  auto engine = database.engine();
  const auto grant = engine.try_lock("job")->detach();
  const auto adopted =
      engine.adopt("job", grant, {.lease = 10min, .renew = false, .label = "a label", .metadata = "words"});
  REQUIRE(adopted);
  const auto holder = engine.inspect("job");
  CHECK(holder->lease == 10min);
  CHECK(holder->left > 9min);
  CHECK(holder->label == "a label");
  CHECK(holder->metadata == "words");
  CHECK(adopted->remaining() > 9min);
}

TEST_CASE("whatever is adopted can be given other words, with statements that are prepared or not") {
  Database database;
  const LockOptions reader{.mode = Mode::shared}, permit{.mode = Mode::permits, .limit = 2}, writer{};
  for (const bool prepared : {true, false})
    for (const auto& options : {writer, reader, permit}) {
      auto engine = database.engine({.prepared_statements = prepared});
      auto taken = options;
      taken.metadata = "page 6";
      const auto grant = engine.try_lock("job", taken)->detach();
      const auto kept = engine.adopt("job", grant);
      REQUIRE(kept);
      const auto adopted = engine.adopt("job", kept->grant(), {.metadata = "page 7"});
      REQUIRE(adopted);
      const auto* written =
          options.mode == Mode::exclusive ? "resource_lock WHERE name = 'job'" : "resource_lock_holder";
      CHECK(database.admin().text(std::string("SELECT meta FROM ") + written) == "page 7");
    }
}

TEST_CASE("adopting for less time than was granted opens the lock no sooner for others, and is trusted no longer") {
  Database database;
  auto engine = database.engine();
  const auto grant = engine.try_lock("job", {.lease = 2h})->detach();
  auto adopted = engine.adopt("job", grant, {.lease = 1h, .renew = false});
  REQUIRE(adopted);
  CHECK(adopted->remaining() <= 1h);
  CHECK(engine.inspect("job")->left > 90min);
  CHECK(adopted->release() == Released::freed);
  CHECK(engine.try_lock("job"));
}

TEST_CASE("a grant that is not the current holder's adopts nothing and changes nothing") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  CHECK_FALSE(engine.adopt("nobody ever had it", {Token{1}, std::string(32, 'a')}));
  CHECK_FALSE(engine.renew("nobody ever had it", {Token{1}, std::string(32, 'a')}, 1h));
  auto old = engine.try_lock("job", {.renew = false});
  REQUIRE(old);
  const auto before = old->detach();
  database.admin().expire("job");
  const auto lock = engine.try_lock("job", {.renew = false});
  REQUIRE(lock);
  const auto row = database.admin().row("job");
  for (const auto& wrong : {before, Grant{Token{number(lock->token()) + 1}, lock->owner()},
                            Grant{before.token, lock->owner()}, Grant{lock->token(), before.owner}}) {
    CHECK_FALSE(engine.adopt("job", wrong));
    CHECK_FALSE(engine.renew("job", wrong));
    CHECK_FALSE(engine.renew("job", wrong, 1h));
  }
  CHECK(database.admin().row("job") == row);
  auto free = engine.try_lock("free");
  const auto freed = free->grant();
  free->release();
  CHECK_FALSE(engine.adopt("free", freed));
  CHECK_FALSE(engine.renew("free", freed, 1h));
}

TEST_CASE("of two who adopt one grant one has it, and the other gets an empty answer") {
  Database database;
  auto engine = database.engine();
  for (int round = 0; round < 10; ++round) {
    const auto grant = engine.try_lock("job", {.reentrance = Reentrance::none})->detach();
    std::array engines{database.engine(), database.engine()};
    std::array<std::optional<Lock>, 6> adopted{};
    in_parallel(6, [&](int i) {
      adopted[static_cast<std::size_t>(i)] = engines[static_cast<std::size_t>(i % 2)].adopt("job", grant);
    });
    CHECK(std::count_if(adopted.begin(), adopted.end(), [](const auto& lock) { return lock.has_value(); }) == 1);
    for (auto& lock : adopted)
      if (lock) CHECK(lock->release() == Released::freed);
  }
}

TEST_CASE("the same message delivered twice: the second adoption is empty, also after the first was released") {
  Database database;
  auto engine = database.engine();
  auto worker = database.engine();
  const auto grant = engine.try_lock("job")->detach();
  auto first = worker.adopt("job", grant);
  REQUIRE(first);
  CHECK_FALSE(worker.adopt("job", grant));
  CHECK(first->release() == Released::freed);
  CHECK_FALSE(worker.adopt("job", grant));
  CHECK(database.admin().held() == 0);
}

TEST_CASE("who held what somebody has adopted has lost it: it fences nothing, renews nothing and frees nothing") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  EventLog news;
  auto engine = database.engine({.observer = news.observer()});
  auto other = database.engine({.label = "the other"});
  auto lock = engine.try_lock("job", {.lease = 10min, .renew_every = 100ms});
  REQUIRE(lock);
  auto adopted = other.adopt("job", lock->grant());
  REQUIRE(adopted);
  CHECK(eventually([&] { return lock->lost().stop_requested(); }));
  CHECK(lock->loss() == Loss::refused);
  CHECK(news.comes(Event::Kind::lost));
  // Where the row could not be looked at within a second it says what it knows.
  const auto text = news.of(Event::Kind::lost).front().text;
  const bool told = text.find("adopted by the other") != std::string::npos;
  CHECK_MESSAGE((told || (slowness() > 1 && text.find("it is no longer ours") != std::string::npos)), text);
  {
    Caller caller(database.test_database());
    caller.begin(database.test_database().beginnings().front());
    CHECK(thrown_by([&] { lock->fence(caller.native()); }).fault == Fault::lost);
  }
  CHECK(lock->release() == Released::was_lost);
  CHECK(adopted->valid());
  CHECK(database.admin().owner("job") == adopted->owner());
  Caller caller(database.test_database());
  caller.begin(database.test_database().beginnings().front());
  adopted->fence(caller.native());
  caller.run("INSERT INTO app VALUES (1)");
  caller.run("COMMIT");
  CHECK(adopted->release() == Released::freed);
}

TEST_CASE("a grant that was rolled back is nobody's, also where another one has the same token") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Caller caller(database.test_database());
  for (const auto& beginning : database.test_database().beginnings()) {
    INFO(beginning.name);
    caller.begin(beginning);
    const auto gone = engine.try_lock_in(caller.native(), "a", 1s, {.lease = 30s});
    REQUIRE(gone);
    caller.run("ROLLBACK");
    auto lock = other.try_lock("a", {.renew = false});
    REQUIRE(lock);
    CHECK(lock->token() == gone->token);  // it counted from the commit that never came
    const auto row = database.admin().row("a");
    CHECK_FALSE(engine.adopt("a", *gone));
    CHECK_FALSE(engine.renew("a", *gone, 1h));
    CHECK(database.admin().row("a") == row);
    CHECK(lock->valid());
    CHECK(lock->release() == Released::freed);
  }
}

TEST_CASE("no two grants that were committed have one token, however many are rolled back in between") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  Caller caller(database.test_database());
  std::set<std::int64_t> tokens;
  Token last{};
  for (int round = 0; round < 12; ++round) {
    caller.begin(database.test_database().beginnings().front());
    const auto grant = engine.try_lock_in(caller.native(), "a", 1s, {.lease = 30s});
    REQUIRE(grant);
    const bool commits = round % 3 != 0;
    caller.run(commits ? "COMMIT" : "ROLLBACK");
    if (commits) {
      CHECK(tokens.insert(number(grant->token)).second);
      CHECK(grant->token > last);
      last = grant->token;
      auto lock = engine.adopt("a", *grant);
      REQUIRE(lock);
      CHECK(lock->release() == Released::freed);
    }
    const auto lease = engine.try_lock("a");
    REQUIRE(lease);
    CHECK(tokens.insert(number(lease->token())).second);
    CHECK(lease->token() > last);
    last = lease->token();
  }
}

TEST_CASE("a grant that was released by force cannot be adopted, nor renewed") {
  Database database;
  auto engine = database.engine();
  const auto grant = engine.try_lock("job")->detach();
  CHECK(engine.force_release("job", grant.token));
  const auto row = database.admin().row("job");
  CHECK_FALSE(engine.adopt("job", grant));
  CHECK_FALSE(engine.renew("job", grant));
  CHECK(database.admin().row("job") == row);
}

TEST_CASE("what was adopted can be handed on again, each time to one") {
  Database database;
  auto engine = database.engine();
  const auto first = engine.try_lock("job")->detach();
  auto grant = first;
  std::set<std::string> owners{grant.owner};
  for (int i = 0; i < 5; ++i) {
    auto lock = engine.adopt("job", grant);
    REQUIRE(lock);
    CHECK(owners.insert(lock->owner()).second);
    CHECK_FALSE(engine.adopt("job", grant));
    grant = lock->detach();
    CHECK(grant.token == first.token);
  }
  CHECK_FALSE(engine.adopt("job", first));
  CHECK(engine.adopt("job", grant)->release() == Released::freed);
}

TEST_CASE("a grant that the entries of a node share is not adopted, and nothing is taken from them") {
  Database database;
  auto one = database.engine({.reentrance = Reentrance::node, .node = "replica-0"});
  auto two = database.engine({.reentrance = Reentrance::node, .node = "replica-0"});
  auto first = one.try_lock("job"), second = two.try_lock("job");
  REQUIRE(first);
  REQUIRE(second);
  const auto row = database.admin().row("job");
  const auto refused = thrown_by([&] { static_cast<void>(two.adopt("job", first->grant())); });
  CHECK(refused.fault == Fault::misuse);
  CHECK(refused.names("replica-0"));
  CHECK(database.admin().row("job") == row);
  CHECK(first->release() == Released::still_held);
  CHECK(second->release() == Released::freed);
}

TEST_CASE("a grant is renewed for who is no Lock, by the length it had or another one, and keeps its owner") {
  Database database;
  auto engine = database.engine();
  const auto grant = engine.try_lock("job", {.lease = 30min})->detach();
  database.admin().age("job", 25min);
  CHECK(engine.renew("job", grant));
  CHECK(engine.inspect("job")->left > 25min);
  CHECK(engine.inspect("job")->owner == grant.owner);
  CHECK(engine.renew("job", grant, 1h));
  CHECK(engine.inspect("job")->left > 59min);
  CHECK(engine.inspect("job")->lease == 1h);
  CHECK(engine.renew("job", grant, 1s));
  CHECK(engine.inspect("job")->left > 59min);
  CHECK(engine.adopt("job", grant, {.lease = 1h})->release() == Released::freed);
}

TEST_CASE("one of several who hold a name is renewed and adopted by the length of its own lease") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  for (const bool adopts : {false, true}) {
    INFO("adopts: " << adopts);
    const LockOptions longest{.mode = Mode::shared, .lease = 8h}, mine{.mode = Mode::shared, .lease = 1h};
    auto other = engine.lock("job", longest);
    const auto grant = engine.lock("job", mine).detach();
    CHECK(other.release() == Released::freed);
    if (!adopts) CHECK(engine.renew("job", grant));
    const auto adopted = adopts ? engine.adopt("job", grant) : std::nullopt;
    CHECK(adopted.has_value() == adopts);
    CHECK(engine.sharers("job").at(0).left <= 1h);
    if (adopts) CHECK(adopted->remaining() <= 1h);
    free_by_force(engine, "job");
  }
}
