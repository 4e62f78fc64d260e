// The promise that a name is 1 to 255 bytes of UTF-8, compared as bytes, never changed or cut.
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::string_literals;

TEST_CASE("names that anything but a comparison of bytes would mix up are different locks") {
  Database database;
  auto engine = database.engine();
  std::vector<std::string> names{"a",
                                 "A",
                                 "a ",
                                 " a",
                                 "a  ",
                                 "a\t",
                                 "a\n",
                                 "E",
                                 "e",
                                 "\xC3\x89" /* É */,
                                 "E\xCC\x81" /* E and an accent */,
                                 "\xC3\xA9" /* é */,
                                 "ss",
                                 "\xC3\x9F" /* ß */,
                                 "i",
                                 "I",
                                 "\xC4\xB1" /* dotless i */,
                                 "'",
                                 "''",
                                 "\"",
                                 "`",
                                 "\\",
                                 "\\'",
                                 "%",
                                 "_",
                                 "*",
                                 "?",
                                 "[a]",
                                 "; DROP TABLE resource_lock; --",
                                 "$1",
                                 ":name",
                                 "?1",
                                 "NULL",
                                 "0",
                                 "00",
                                 "\xF0\x9F\x98\x80" /* an emoji */,
                                 "\xF0\x9F\x98\x81",
                                 "\xE2\x80\x8B" /* no width */,
                                 "\x01",
                                 "\x7F",
                                 std::string(255, 'x'),
                                 std::string(254, 'x'),
                                 std::string(254, 'x') + "y",
                                 std::string(252, 'z') + "\xE2\x82\xAC" /* a euro sign that ends on the last byte */};
  std::vector<Lock> locks;
  for (const auto& name : names) {
    auto lock = engine.try_lock(name);
    REQUIRE_MESSAGE(lock, name);
    CHECK(lock->name() == name);
    locks.push_back(std::move(*lock));
  }
  for (const auto& name : names) {
    CHECK_FALSE(engine.try_lock(name, {.reentrance = Reentrance::none}));
    const auto row = engine.inspect(name);
    REQUIRE(row);
    CHECK(row->name == name);
  }
  std::vector<std::string> listed;
  for (const auto& row : engine.list()) listed.push_back(row.name);
  std::sort(names.begin(), names.end());
  CHECK(listed == names);  // ordered by bytes too
}

TEST_CASE("a name that is no name is refused before anything is sent, with the rule and the value") {
  Database database;
  auto engine = database.engine();
  const std::vector<std::string> wrong{""s,
                                       std::string(256, 'x'),
                                       std::string(254, 'x') + "\xC3\xA9",
                                       "a\0b"s,
                                       "\0"s,
                                       "\x80"s,
                                       "caf\xE9"s,
                                       "\xC3"s,
                                       "\xC0\xAF"s /* overlong */,
                                       "\xED\xA0\x80"s /* half a surrogate pair */,
                                       "\xF4\x90\x80\x80"s /* above U+10FFFF */,
                                       "\xFF"s};
  for (const auto& name : wrong) {
    for (const auto& thrown :
         {thrown_by([&] { engine.try_lock(name); }),
          thrown_by([&] { engine.try_lock_for(name, std::chrono::seconds{1}); }),
          thrown_by([&] { engine.wait_free(name, std::chrono::seconds{1}); }), thrown_by([&] {
            engine.adopt(name, {Token{1}, std::string(32, 'a')});
          }),
          thrown_by([&] {
            engine.renew(name, {Token{1}, std::string(32, 'a')});
          }),
          thrown_by([&] { engine.inspect(name); }), thrown_by([&] { engine.force_release(name, Token{1}); })}) {
      CHECK(thrown.fault == Fault::misuse);
      CHECK_MESSAGE(thrown.names("name"), thrown.text);
      CHECK(thrown.text.find('\n') == std::string::npos);
      CHECK(thrown.text.find('\0') == std::string::npos);
    }
  }
  CHECK(thrown_by([&] { engine.try_lock(std::string(256, 'x')); }).names("255"));
  CHECK(thrown_by([&] { engine.try_lock("caf\xE9"); }).names("UTF-8"));
  CHECK(thrown_by([&] { engine.try_lock("caf\xE9"); }).names("caf"));
  CHECK(engine.list().empty());
}
