// The promise that metadata and labels come back as they were given.
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::string_literals;

TEST_CASE("metadata and label come back byte for byte while the lock is held, and are gone when it is free") {
  Database database;
  auto engine = database.engine();
  std::string longest;
  while (longest.size() < 4096) longest += "\xF0\x9F\x94\x92";  // 1024 padlocks
  for (const auto& text : {"{\"job\": \"it's\\n \\\\ `x` \\\"y\\\"\"}"s, " blanks at both ends "s, "\n\t"s, longest,
                           "\xC3\x89t\xC3\xA9"s, ""s}) {
    const auto lock = engine.try_lock("job", {.label = "caf\xC3\xA9 'one' \\ \xF0\x9F\x98\x80", .metadata = text});
    REQUIRE(lock);
    const auto row = engine.inspect("job");
    REQUIRE(row);
    CHECK(row->metadata == text);
    CHECK(row->label == "caf\xC3\xA9 'one' \\ \xF0\x9F\x98\x80");
  }
  const auto free = engine.inspect("job");
  REQUIRE(free);
  CHECK(free->state == State::free);
  CHECK(free->metadata.empty());
  CHECK(free->owner.empty());
  CHECK(free->node.empty());
}

TEST_CASE("the next holder's metadata and label replace those of an expired one") {
  Database database;
  auto engine = database.engine({.label = "of the engine"});
  auto gone = engine.try_lock("job", {.renew = false, .label = "first", .metadata = "first"});
  REQUIRE(gone);
  gone->detach();
  database.admin().expire("job");
  const auto lock = engine.try_lock("job");
  REQUIRE(lock);
  const auto row = engine.inspect("job");
  REQUIRE(row);
  CHECK(row->label == "of the engine");
  CHECK(row->metadata.empty());
}

TEST_CASE("without a label a lock carries the process, and without a node the host") {
  Database database;
  auto engine = database.engine();
  auto named = database.engine({.node = "replica-7"});
  const auto one = engine.try_lock("one");
  const auto two = named.try_lock("two");
  REQUIRE(engine.inspect("one"));
  CHECK_FALSE(engine.inspect("one")->node.empty());
  CHECK(engine.inspect("one")->label.find(':') != std::string::npos);
  CHECK(engine.inspect("two")->node == "replica-7");
}

TEST_CASE("metadata and labels that are too long or no text are refused before anything is sent") {
  Database database;
  auto engine = database.engine();
  for (const auto& text : {std::string(4097, 'x'), "\xFF"s, "a\0b"s}) {
    const auto thrown = thrown_by([&] { engine.try_lock("job", {.metadata = text}); });
    CHECK(thrown.fault == Fault::misuse);
    CHECK_MESSAGE(thrown.names("metadata"), thrown.text);
  }
  for (const auto& text : {std::string(256, 'x'), "\xFF"s, "a\0b"s}) {
    const auto thrown = thrown_by([&] { engine.try_lock("job", {.label = text}); });
    CHECK(thrown.fault == Fault::misuse);
    CHECK_MESSAGE(thrown.names("label"), thrown.text);
  }
  CHECK(engine.list().empty());
}

TEST_CASE("metadata can be written anew while the lock is held, and go with it") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto lock = engine.try_lock("job", {.metadata = "at first"});
  REQUIRE(lock);
  const auto ends = database.admin().expires_at("job");
  for (const auto& text :
       {"{\"rows\": 5000}"s, "it's \\ \xF0\x9F\x94\x92"s, std::string(4096, 'x'), ""s, "the last"s}) {
    lock->update_metadata(text);
    CHECK(other.inspect("job")->metadata == text);
    CHECK(other.list().front().metadata == text);
    CHECK(other.inspect("job")->token == lock->token());
  }
  CHECK(database.admin().expires_at("job") >= ends);
  for (const auto& text : {std::string(4097, 'x'), "\xFF"s, "a\0b"s}) {
    const auto thrown = thrown_by([&] { lock->update_metadata(text); });
    CHECK(thrown.fault == Fault::misuse);
    CHECK_MESSAGE(thrown.names("metadata"), thrown.text);
  }
  CHECK(other.inspect("job")->metadata == "the last");
  CHECK(lock->release() == Released::freed);
  CHECK(engine.inspect("job")->metadata.empty());
  CHECK(engine.inspect("job")->kept.empty());
  CHECK(thrown_by([&] { lock->update_metadata("too late"); }).fault == Fault::lost);
}

TEST_CASE("what a holder keeps is there for the next ones, however its own grant ends") {
  Database database;
  auto engine = database.engine();
  const auto kept = [&] { return engine.inspect("job")->kept; };
  {
    auto lock = engine.try_lock("job", {.metadata = "of the first"});
    lock->update_metadata("page 7", Keep::for_next);
    CHECK(engine.inspect("job")->metadata == "page 7");
    lock->update_metadata("nearly done");  // for those who look now
    CHECK(engine.inspect("job")->metadata == "nearly done");
    CHECK(kept() == "page 7");
  }
  CHECK(engine.inspect("job")->state == State::free);
  CHECK(engine.inspect("job")->metadata.empty());
  CHECK(kept() == "page 7");
  {
    auto expired = engine.try_lock("job", {.renew = false, .metadata = "of the second"});
    CHECK(engine.inspect("job")->metadata == "of the second");
    CHECK(kept() == "page 7");
    expired->update_metadata("page 8", Keep::for_next);
    expired->detach();
  }
  database.admin().expire("job");
  CHECK(kept() == "page 8");
  CHECK(engine.reap().abandoned == 1);
  CHECK(kept() == "page 8");
  {
    auto forced = engine.try_lock("job", {.renew = false});
    forced->update_metadata("page 9", Keep::for_next);
    CHECK(engine.force_release("job", forced->token()));
    CHECK(thrown_by([&] { forced->update_metadata("page 10", Keep::for_next); }).fault == Fault::lost);
  }
  CHECK(kept() == "page 9");
  auto lock = engine.try_lock("job");
  CHECK(kept() == "page 9");
  lock->update_metadata("", Keep::for_next);
  CHECK(kept().empty());
}

TEST_CASE("who has lost the lock to another one writes nothing, and is told that it is lost") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto late = engine.try_lock("job", {.lease = std::chrono::hours{1}, .renew = false});
  REQUIRE(late);
  database.admin().expire("job");
  late->update_metadata("nobody has taken it");  // so it may still be written
  CHECK(engine.inspect("job")->metadata == "nobody has taken it");
  const auto lock = other.try_lock("job", {.metadata = "of the next"});
  REQUIRE(lock);
  CHECK(thrown_by([&] { late->update_metadata("of the late one", Keep::for_next); }).fault == Fault::lost);
  CHECK(late->loss() == Loss::refused);
  CHECK_FALSE(late->valid());
  CHECK(engine.inspect("job")->metadata == "of the next");
  CHECK(engine.inspect("job")->kept.empty());
}

TEST_CASE("the entries of a node have metadata each, and what one of them writes is shown, until they have left") {
  Database database;
  auto first = database.engine({.node = "a node"});
  auto second = database.engine({.node = "a node"});
  const LockOptions node{.reentrance = Reentrance::node};
  auto one = first.try_lock("job", {.reentrance = Reentrance::node, .metadata = "as granted"});
  auto two = second.try_lock("job", node);
  REQUIRE(one);
  REQUIRE(two);
  CHECK(first.inspect("job")->metadata == "as granted");
  one->update_metadata("of the first");
  two->update_metadata("of the second", Keep::for_next);
  CHECK(first.inspect("job")->metadata == "of the second");
  const auto of = [&](const Lock& lock) {
    return database.admin().text("SELECT meta FROM resource_lock_holder WHERE owner = '" + lock.owner() + "'");
  };
  CHECK(of(*one) == "of the first");
  CHECK(of(*two) == "of the second");
  CHECK(one->release() == Released::still_held);
  CHECK(thrown_by([&] { one->update_metadata("gone"); }).fault == Fault::lost);
  CHECK(first.inspect("job")->metadata == "of the second");
  two->update_metadata("still there");
  CHECK(first.inspect("job")->metadata == "still there");
  CHECK(two->release() == Released::freed);
  CHECK(first.inspect("job")->metadata.empty());
  CHECK(first.inspect("job")->kept == "of the second");
}

TEST_CASE("the reaper leaves a row alone in which something is kept, but who removes it may") {
  Database database;
  auto engine =
      database.engine({.reaper = {.retention = std::chrono::hours{1}, .grace = std::chrono::milliseconds{20}}});
  engine.try_lock("kept")->update_metadata("page 7", Keep::for_next);
  engine.try_lock("plain")->update_metadata("page 7");
  for (const char* name : {"kept", "plain"}) database.admin().make_idle_for_days(name);
  CHECK(engine.reap_all().removed == 1);
  CHECK(database.admin().exists("kept"));
  CHECK_FALSE(database.admin().exists("plain"));
  CHECK(engine.remove("kept") == Removal::removed);
  engine.try_lock("kept").reset();
  CHECK(engine.inspect("kept")->kept.empty());
}
