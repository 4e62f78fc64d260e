// This file knows the promise that metadata and labels come back as they were given.
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
