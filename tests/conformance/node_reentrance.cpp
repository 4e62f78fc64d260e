// The promise that the processes of one node share a lock, and that a dead one does not keep it.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <future>
#include <memory>
#include <set>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

EngineOptions of_node(std::string node, bool exclusive = false) {
  EngineOptions options;
  options.node = std::move(node);
  options.reentrance = Reentrance::node;
  options.node_exclusive = exclusive;
  return options;
}

// Another process of a node, that has taken "job".
struct Process {
  Child child;
  Token token{};

  Process(Database& database, const std::string& node, Duration lease)
      : child(worker({"enter", database.url(), "job", node,
                      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(lease).count())})) {
    const auto line = child.line();
    REQUIRE(line);
    token = Token{std::stoll(*line)};
  }
};

struct Scene {
  Database database;
  const std::shared_ptr<store::LockTable> table = database.table();
  const Name name{"job"};

  store::AcquireRequest ask(std::string_view owner) const {
    store::AcquireRequest request{name, owner, "node", "label", "actor", 30s, {}, ""};
    request.mode = Mode::node;
    return request;
  }
  store::LeaseKey key(const store::AcquireRequest& ask, Token token) const {
    return {name.text(), ask.owner, token, ask.lease, Mode::node};
  }
};

}  // namespace

TEST_CASE("engines of one node share the token, and the lock is free when the last entry has left") {
  Database database;
  auto one = database.engine(of_node("replica-0"));
  auto two = database.engine(of_node("replica-0"));
  auto stranger = database.engine(of_node("replica-1"));
  auto first = one.try_lock("job");
  REQUIRE(first);
  const auto begun = database.admin().acquired_at("job");
  auto second = two.try_lock("job");
  auto third = one.try_lock("job");  // the same thread of the same engine is one more entry too
  REQUIRE(second);
  REQUIRE(third);
  CHECK(second->token() == first->token());
  CHECK(second->owner() != first->owner());
  CHECK(database.admin().acquired_at("job") == begun);
  CHECK(one.inspect("job")->entries == 3);
  Refusal refusal;
  CHECK(eventually([&] { return !stranger.try_lock("job", {}, &refusal) && !refusal.holder.owner.empty(); }));
  CHECK(refusal.holder.node == "replica-0");
  CHECK(first->release() == Released::still_held);
  CHECK(first->release() == Released::still_held);
  CHECK(one.inspect("job")->entries == 2);
  CHECK_FALSE(stranger.try_lock("job"));
  CHECK(third->release() == Released::still_held);
  CHECK(second->release() == Released::freed);
  CHECK(stranger.try_lock("job"));
}

TEST_CASE("what is told of the entries of a node is the label of the first that is there") {
  Database database;
  auto engine = database.engine(of_node("replica-0"));
  for (int round = 0; round < 8; ++round) {
    auto first = engine.try_lock("job", {.label = "first"});
    // SQLite's clock counts milliseconds.
    CHECK(eventually([&] {
      const auto later = engine.try_lock("later");
      return database.admin().acquired_at("later") > database.admin().acquired_at("job");
    }));
    auto second = engine.try_lock("job", {.label = "second"});
    REQUIRE(second);
    CHECK(engine.inspect("job")->label == "first");
    first.reset();
    CHECK(engine.inspect("job")->label == "second");
  }
}

TEST_CASE("a lock that was not taken for the node is not entered, nor by who did not ask for it") {
  Database database;
  auto plain = database.engine({.node = "replica-0"});
  auto node = database.engine(of_node("replica-0"));
  {
    const auto lock = plain.try_lock("job");
    CHECK_FALSE(node.try_lock("job"));
  }
  {
    const auto lock = node.try_lock("job");
    CHECK_FALSE(plain.try_lock("job"));
    CHECK_FALSE(node.try_lock("job", {.reentrance = Reentrance::none}));
    CHECK(plain.try_lock("job", {.reentrance = Reentrance::node}));
  }
}

TEST_CASE("an entry is beside no reader, no permit and no other node, and none of them beside it") {
  Database database;
  auto engine = database.engine({.node = "replica-0"});
  auto node = database.engine(of_node("replica-0")), exclusive = database.engine(of_node("replica-0", true));
  const LockOptions reader{.mode = Mode::shared}, permit{.mode = Mode::permits, .limit = 5};
  for (const auto& several : {reader, permit}) {
    {
      const auto lock = engine.try_lock("job", several);
      REQUIRE(lock);
      CHECK_FALSE(node.try_lock("job"));
      CHECK_FALSE(exclusive.try_lock("job"));
      CHECK(lock->valid());
    }
    const auto lock = node.try_lock("job");
    REQUIRE(lock);
    CHECK_FALSE(engine.try_lock("job", several));
  }
  const auto row = node.inspect("job");
  CHECK(row->state == State::free);
  auto held = node.try_lock("job");
  CHECK(node.inspect("job")->mode == Mode::node);
  CHECK(thrown_by([&] { held->downgrade(); }).fault == Fault::misuse);
}

TEST_CASE("an entry can be asked for and left repeatedly, and counts once; what was withdrawn is not granted late") {
  Scene scene;
  const auto first = scene.ask("0123456789abcdef0123456789abcdef");
  const auto granted = scene.table->acquire(first, soon()).token;
  REQUIRE(granted);
  CHECK(scene.table->acquire(first, soon()).token == granted);
  const auto second = scene.ask("ffffffffffffffffffffffffffffffff");
  for (int i = 0; i < 3; ++i) CHECK(scene.table->acquire(second, soon()).token == granted);
  CHECK(scene.table->inspect("job", soon())->entries == 2);
  const auto of_first = scene.key(first, *granted), of_second = scene.key(second, *granted);
  for (int i = 0; i < 3; ++i) CHECK(scene.table->renew({&of_second, 1}, soon()).front() == store::Renewed::yes);
  for (const bool there : {true, false}) {
    const auto left = scene.table->leave(of_first, soon());
    CHECK(left.was_there == there);
    CHECK(left.still_held);
  }
  const auto end = scene.database.admin().expires_at("job");
  scene.table->withdraw("job", first.owner, soon(), Mode::node, *granted);
  auto late = first;
  late.lease = 10h;
  CHECK_FALSE(scene.table->acquire(late, soon()).token);
  CHECK(scene.database.admin().expires_at("job") == end);
  const auto last = scene.table->leave(of_second, soon());
  CHECK(last.was_there);
  CHECK_FALSE(last.still_held);
  const auto row = scene.database.admin().row("job");
  CHECK_FALSE(scene.table->leave(of_second, soon()).was_there);
  CHECK(scene.table->renew({&of_second, 1}, soon()).front() == store::Renewed::lost);
  CHECK(scene.table->extend(of_second, 30s, {}, soon()) == store::Renewed::lost);
  CHECK_FALSE(scene.table->acquire(late, soon()).token);
  CHECK(scene.database.admin().row("job") == row);
}

TEST_CASE("an attempt of an entry that was replaced takes nothing from who has replaced it, when it arrives late") {
  Scene scene;
  auto old = scene.ask("0123456789abcdef0123456789abcdef");
  old.actor = "00000000000000000000000000000001";
  const auto granted = scene.table->acquire(old, soon()).token;
  REQUIRE(granted);
  auto next = scene.ask("ffffffffffffffffffffffffffffffff");
  next.actor = "11111111111111111111111111111111";
  next.alone = true;
  const auto token = scene.table->acquire(next, soon()).token;
  REQUIRE(token);
  CHECK(number(*token) == number(*granted) + 1);
  const auto row = scene.database.admin().row("job");
  for (const bool alone : {false, true}) {
    old.alone = alone;
    CHECK_FALSE(scene.table->acquire(old, soon()).token);
    CHECK(scene.database.admin().row("job") == row);
  }
  const auto left = scene.table->leave(scene.key(next, *token), soon());
  CHECK(left.was_there);
  CHECK_FALSE(left.still_held);
}

TEST_CASE("an entry that has ended lets nobody of its node be alone beside others") {
  Scene scene;
  auto ended = scene.ask("0123456789abcdef0123456789abcdef");
  ended.actor = "00000000000000000000000000000001";
  const auto token = scene.table->acquire(ended, soon()).token;
  REQUIRE(token);
  scene.database.admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at");
  auto other = scene.ask("11111111111111111111111111111111");
  other.actor = "11111111111111111111111111111111";
  CHECK(scene.table->acquire(other, soon()).token == token);
  auto again = scene.ask("22222222222222222222222222222222");
  again.actor = ended.actor;
  again.alone = true;
  const auto alone = scene.table->acquire(again, soon()).token;
  REQUIRE(alone);
  CHECK(number(*alone) == number(*token) + 1);
  CHECK_FALSE(scene.table->leave(scene.key(again, *alone), soon()).still_held);
}

TEST_CASE("who replaces its node under a ticket leaves others theirs") {
  Scene scene;
  auto old = scene.ask("0123456789abcdef0123456789abcdef");
  old.actor = "11111111111111111111111111111111";
  REQUIRE(scene.table->acquire(old, soon()).token);
  Hand stranger(*scene.table, 3), heir(*scene.table, 4);
  const auto before = stranger.draw_ticket();
  auto next = scene.ask(heir.owner());
  next.actor = heir.actor();
  next.alone = true;
  next.ticket = heir.draw_ticket();
  REQUIRE(next.ticket > before);
  const auto token = scene.table->acquire(next, soon()).token;
  REQUIRE(token);
  CHECK(scene.database.admin().number("SELECT served_ticket FROM resource_lock WHERE name = 'job'") < before);
  CHECK(stranger.lives());
  CHECK(scene.table->leave(scene.key(next, *token), soon()).was_there);
  CHECK(stranger.acquire());
  CHECK(stranger.release());
}

TEST_CASE("nothing that is sent again, or arrives late, makes an entry or its row end earlier") {
  Scene scene;
  const auto ask = scene.ask("0123456789abcdef0123456789abcdef");
  const auto token = scene.table->acquire(ask, soon()).token;
  REQUIRE(token);
  auto claim = scene.key(ask, *token);
  CHECK(scene.table->extend(claim, 1h, {}, soon()) == store::Renewed::yes);
  const auto entry = [&] { return scene.database.admin().number("SELECT expires_at FROM resource_lock_holder"); };
  auto end = scene.database.admin().expires_at("job");
  auto its = entry();
  const auto is_kept = [&] {
    CHECK(scene.database.admin().expires_at("job") >= end);
    CHECK(entry() >= its);
    end = scene.database.admin().expires_at("job");
    its = entry();
  };
  claim.lease = 1s;
  CHECK(scene.table->renew({&claim, 1}, soon()).front() == store::Renewed::yes);
  is_kept();
  CHECK(scene.table->extend(claim, 1s, {}, soon()) == store::Renewed::yes);
  is_kept();
  CHECK(scene.table->acquire(ask, soon()).token == token);
  is_kept();
  CHECK(scene.table->release(claim, soon()));
  CHECK(scene.database.admin().held() == 0);
}

TEST_CASE("an entry waits for nobody who waits, and those keep their place") {
  Database database;
  auto one = database.engine(of_node("replica-0")), two = database.engine(of_node("replica-0"));
  auto stranger = database.engine();
  auto first = one.try_lock("job");
  REQUIRE(first);
  auto waits =
      std::async(std::launch::async, [&] { return stranger.try_lock_for("job", 2min, {.fairness = Fairness::fifo}); });
  CHECK(eventually([&] { return !stranger.waiters().empty() && stranger.waiters().front().ticket == 1; }));
  auto second = two.try_lock("job");
  auto third = two.try_lock_for("job", 2min, {.fairness = Fairness::fifo});
  REQUIRE(second);
  REQUIRE(third);
  CHECK(third->token() == first->token());
  CHECK(stranger.waiters().size() == 1);
  CHECK(database.admin().number("SELECT served_ticket FROM resource_lock WHERE name = 'job'") <= 1);
  for (auto* lock : {&first, &second, &third}) lock->reset();
  CHECK(waits.get().has_value());
}

TEST_CASE("many who enter and leave at once are counted rightly") {
  Database database;
  auto one = database.engine(of_node("replica-0"));
  auto two = database.engine(of_node("replica-0"));
  auto keeps = one.try_lock("job");
  REQUIRE(keeps);
  in_parallel(6, [&](int i) {
    for (int round = 0; round < 4; ++round) {
      auto lock = (i % 2 == 0 ? one : two).lock("job");
      CHECK(lock.token() == keeps->token());
      CHECK(lock.valid());
      CHECK(lock.release() == Released::still_held);
    }
  });
  CHECK(one.inspect("job")->entries == 1);
  CHECK(keeps->release() == Released::freed);
}

TEST_CASE("whoever races to be first, all of a node get in, with one token") {
  Database database;
  auto one = database.engine(of_node("replica-0"));
  auto two = database.engine(of_node("replica-0"));
  std::vector<std::optional<Lock>> locks(6);
  in_parallel(6,
              [&](int i) { locks[static_cast<std::size_t>(i)] = (i % 2 == 0 ? one : two).try_lock_for("job", 2min); });
  std::set<std::int64_t> tokens;
  for (const auto& lock : locks) {
    REQUIRE(lock);
    CHECK(lock->valid());
    tokens.insert(number(lock->token()));
  }
  CHECK(tokens.size() == 1);
  CHECK(one.inspect("job")->entries == 6);
}

TEST_CASE("who waits enters as soon as its own node holds the lock, and need not wait until it is free") {
  Database database;
  auto stranger = database.engine(of_node("replica-1"));
  auto one = database.engine(of_node("replica-0"));
  auto two = database.engine(of_node("replica-0"));
  auto held = stranger.try_lock("job");
  std::optional<Lock> first, second;
  in_parallel(3, [&](int i) {
    if (i == 0) CHECK(held->release() == Released::freed);
    if (i == 1) first = one.try_lock_for("job", 2min);
    if (i == 2) second = two.try_lock_for("job", 2min);
  });
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->token() == second->token());
}

TEST_CASE("every entry is renewed, beside plain leases and for longer than a lease") {
  Database database;
  auto one = database.engine(of_node("replica-0"));
  auto two = database.engine(of_node("replica-0"));
  const auto lease = 2500ms * slowness(), longer = 3000ms * slowness();
  const auto first = one.try_lock("job", {.lease = lease});
  const auto second = two.try_lock("job", {.lease = longer});
  const auto plain = one.try_lock("plain", {.lease = lease, .reentrance = Reentrance::none});
  REQUIRE(second);
  REQUIRE(plain);
  const auto begun = database.admin().acquired_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > begun + 2 * longer; }));
  for (const auto* lock : {&first, &second, &plain}) CHECK((*lock)->valid());
  CHECK(one.inspect("job")->entries == 2);
}

TEST_CASE("a killed process does not keep the lock: its entry ends by its own lease while another one is renewed") {
  Database database;
  auto engine = database.engine(of_node("replica-0"));
  auto stranger = database.engine(of_node("replica-1"));
  const auto lease = 2500ms * slowness();
  Process process(database, "replica-0", lease);
  auto mine = engine.try_lock("job", {.lease = lease});
  REQUIRE(mine);
  CHECK(mine->token() == process.token);
  process.child.signal(SIGKILL);
  CHECK(process.child.wait() == killed_by(SIGKILL));
  const auto killed = database.admin().expires_at("job");
  // Whoever lives keeps it well beyond what the dead one had left.
  CHECK(eventually([&] { return database.admin().expires_at("job") > killed + 2 * lease; }));
  CHECK(mine->valid());
  CHECK_FALSE(stranger.try_lock("job"));
  CHECK(mine->release() == Released::freed);
  CHECK(stranger.try_lock("job"));
}

TEST_CASE("the other way round: the living process leaves, and the entry of the killed one ends with its lease") {
  Database database;
  auto engine = database.engine(of_node("replica-0"));
  auto stranger = database.engine(of_node("replica-1"));
  const auto lease = 1500ms * slowness();
  Process process(database, "replica-0", lease);
  auto mine = engine.try_lock("job", {.lease = lease});
  REQUIRE(mine);
  process.child.signal(SIGKILL);
  CHECK(process.child.wait() == killed_by(SIGKILL));
  const auto released = mine->release();
  CHECK((released == Released::still_held || released == Released::freed));  // freed: this machine was slow
  CHECK(stranger.try_lock_for("job", 2min));
}

TEST_CASE("two processes of a node are inside together, and leave one after the other") {
  Database database;
  auto engine = database.engine(of_node("replica-0"));
  Process one(database, "replica-0", 30s), two(database, "replica-0", 30s);
  CHECK(one.token == two.token);
  CHECK(engine.inspect("job")->entries == 2);
  one.child.tell("release");
  CHECK(one.child.line() == "still_held");
  two.child.tell("check");
  CHECK(two.child.line() == "valid");
  two.child.tell("release");
  CHECK(two.child.line() == "freed");
}

TEST_CASE("a restarted replica joins what its predecessor left behind, at once and with the same token") {
  Database database;
  auto stranger = database.engine(of_node("replica-1"));
  Process process(database, "replica-0", 1h);
  process.child.signal(SIGKILL);
  CHECK(process.child.wait() == killed_by(SIGKILL));
  CHECK_FALSE(stranger.try_lock("job"));
  auto engine = database.engine(of_node("replica-0"));
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK(lock->token() == process.token);
  // The predecessor's entry stays until its own end.
  CHECK(lock->release() == Released::still_held);
  free_by_force(engine, "job");
}

TEST_CASE(
    "with node_exclusive a restarted replica replaces its predecessor: the next token, and its renewals are refused") {
  Database database;
  auto predecessor = database.engine(of_node("replica-0"));
  auto at_least_an_hour = renewed_often();
  at_least_an_hour.at_least = 1h;
  auto old = predecessor.try_lock("job", at_least_an_hour);
  auto older = predecessor.try_lock("job", renewed_often());
  REQUIRE(older);
  auto engine = database.engine(of_node("replica-0", true));
  auto stranger = database.engine(of_node("replica-1", true));
  CHECK_FALSE(stranger.try_lock("job"));
  auto lock = engine.try_lock_for("job", 2min, {.lease = 30s, .at_least = 2h, .metadata = "of the new one"});
  REQUIRE(lock);
  CHECK(number(lock->token()) == number(old->token()) + 1);
  CHECK(lock->owner() != old->owner());
  CHECK(eventually([&] { return !old->valid() && !older->valid(); }));
  CHECK(old->release() == Released::was_lost);
  CHECK(older->release() == Released::was_lost);
  const auto row = engine.inspect("job");
  REQUIRE(row);
  CHECK(row->entries == 1);
  CHECK(row->metadata == "of the new one");
  const auto closed_for = database.admin().reopens_at("job") - database.admin().acquired_at("job");
  CHECK(closed_for >= 2h);
  CHECK(closed_for <= 2h + 1min);
  // Its own threads join it, and are not replaced.
  auto again = engine.try_lock("job");
  REQUIRE(again);
  CHECK(again->token() == lock->token());
  CHECK(lock->valid());
  CHECK(again->release() == Released::still_held);
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("threads of one exclusive engine that race to replace a predecessor get in with one token") {
  Database database;
  auto predecessor = database.engine(of_node("replica-0"));
  auto old = predecessor.try_lock("job", {.lease = 1h});
  REQUIRE(old);
  auto engine = database.engine(of_node("replica-0", true));
  std::vector<std::optional<Lock>> locks(4);
  in_parallel(4, [&](int i) { locks[static_cast<std::size_t>(i)] = engine.try_lock_for("job", 2min); });
  for (const auto& lock : locks) {
    REQUIRE(lock);
    CHECK(number(lock->token()) == number(old->token()) + 1);
  }
  CHECK(engine.inspect("job")->entries == 4);
  CHECK(old->release() == Released::was_lost);
}

TEST_CASE("a released or expired lock of the node is granted anew, and its old entries are gone") {
  Database database;
  auto engine = database.engine(of_node("replica-0"));
  auto late = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(late);
  database.admin().expire("job");
  auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(number(next->token()) == number(late->token()) + 1);
  CHECK(engine.inspect("job")->entries == 1);
  CHECK(late->release() == Released::was_lost);
  CHECK(next->valid());
}

TEST_CASE("a forced release ends all entries") {
  Database database;
  auto one = database.engine(of_node("replica-0"));
  auto two = database.engine(of_node("replica-0"));
  auto first = one.try_lock("job", renewed_often());
  auto second = two.try_lock("job", renewed_often());
  REQUIRE(second);
  CHECK(one.force_release("job", first->token()));
  CHECK(eventually([&] { return first->loss() && second->loss(); }));
}

TEST_CASE("an extension is of one entry: the lock lives as long as the longest") {
  Database database;
  auto one = database.engine(of_node("replica-0"));
  auto first = one.try_lock("job", {.lease = 30s});
  REQUIRE(first);
  first->extend(3h);
  auto second = one.try_lock("job", {.lease = 10min});
  REQUIRE(second);
  second->extend(1h);
  CHECK(second->remaining() <= 1h);
  CHECK(one.inspect("job")->left > 2h);
  CHECK(one.inspect("job")->left <= 3h);
  first->extend(2h);  // believed at once, while the row keeps the end that it had
  CHECK(first->remaining() <= 2h);
  CHECK(one.inspect("job")->left > 2h);
  second->extend(6h);
  CHECK(one.inspect("job")->left > 5h);
  CHECK(first->remaining() <= 2h);
  CHECK(first->valid());
}

TEST_CASE("there is room for as many entries as come") {
  Database database;
  auto options = of_node("replica-0");
  options.timeouts.release = 2min;
  auto engine = database.engine(options);
  std::vector<Lock> locks;
  for (int i = 0; i < 100; ++i) locks.push_back(engine.lock("job"));
  CHECK(engine.inspect("job")->entries == 100);
  CHECK(engine.release_all().still_held == 99);
}

TEST_CASE("who is inside by its node may enter again while another thread of its engine waits for it to come out") {
  Database database;
  auto engine = database.engine(of_node("node"));
  const LockOptions alone{.reentrance = Reentrance::none};
  std::future<std::optional<Lock>> waiting;  // ends behind what it waits for
  auto outer = engine.lock("job");
  waiting = std::async(std::launch::async, [&] { return engine.try_lock_for("job", far_longer(), alone); });
  CHECK(eventually([&] { return engine.stats().waiting["job"] == 1; }));
  auto inner = engine.try_lock_for("job", 20s * slowness());
  REQUIRE(inner);
  CHECK(inner->token() == outer.token());
  CHECK(waiting.wait_for(0s) == std::future_status::timeout);
  inner->release();
  outer.release();
  CHECK(waiting.get());
}
