// How a .sql file is read: headers, arguments, names of tables, and which files are defects.
#include "dialects/statement.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using namespace dlock::dialects;

namespace {

const Quote in_double_quotes = [](std::string_view identifier) { return "\"" + std::string(identifier) + "\""; };

Statements read(std::string_view text, Marker marker = Marker::dollar, TableNames names = {}) {
  return {text, names, marker, in_double_quotes};
}

Statement one(const std::string& body, Marker marker = Marker::dollar) {
  return read("-- name: it(a, b)\n" + body, marker).at("it", {"a", "b"});
}

}  // namespace

TEST_CASE("a file is a list of named statements") {
  const auto statements = read(
      "-- Nothing is known here.\n\n"
      "-- name: first(a)\n-- For people: don't stop here.\nSELECT :a;\n\n"
      "-- name:second( ) -> word\nSELECT 2\n  FROM t;\n");
  CHECK(statements.size() == 2);
  const auto& first = statements.at("first", {"a"});
  CHECK(first.sql == "SELECT $1");
  CHECK(first.number != 0);
  CHECK(first.hint.empty());
  const auto& second = statements.at("second", {});
  CHECK(second.sql == "SELECT 2\n  FROM t");
  CHECK(second.number != 0);
  CHECK(second.number != first.number);
  CHECK(second.hint == "word");
  CHECK(statements.has("first"));
  CHECK_FALSE(statements.has("third"));
}

TEST_CASE("a fragment stands wherever its word does, in statements before and after it and in other fragments") {
  const auto statements = read(
      "-- name: first(a)\nSELECT {{later}} + :a + {{later}} FROM {{lock}};\n\n"
      "-- fragment: now\n-- For people.\nclock()\n\n"
      "-- fragment: later\n({{now}} + :a)\n\n-- What the next file\n-- begins with.\n\n"
      "-- name: second()\nSELECT {{now}}\n");
  CHECK(statements.size() == 2);
  CHECK(statements.at("first", {"a"}).sql == "SELECT (clock() + $1) + $1 + (clock() + $1) FROM \"resource_lock\"");
  CHECK(statements.at("second", {}).sql == "SELECT clock()");
  for (const std::string wrong : {"-- fragment: a\n{{b}}\n-- fragment: b\n{{a}}\n-- name: it()\nSELECT {{a}}\n",
                                  "-- fragment: a\n1\n-- fragment: a\n2\n-- name: it()\nSELECT 1\n",
                                  "-- fragment: a\n1\n-- name: it()\nSELECT {{b}}\n"})
    CHECK_THROWS_AS(read(wrong), std::logic_error);
}

TEST_CASE("arguments become the database's own markers") {
  CHECK(one("SELECT :b, :a, :b").sql == "SELECT $2, $1, $2");
  const auto question = one("SELECT :b, :a, :b", Marker::question);
  CHECK(question.sql == "SELECT ?, ?, ?");
  CHECK(question.markers == std::vector<std::size_t>{1, 0, 1});
  CHECK(one("SELECT :a+:b").sql == "SELECT $1+$2");
  CHECK(one("SELECT (:a)::bigint").sql == "SELECT ($1)::bigint");
  CHECK(one("SELECT :a::bigint, x::text").sql == "SELECT $1::bigint, x::text");
  CHECK(one("SELECT @x:=:a", Marker::question).sql == "SELECT @x:=?");
}

TEST_CASE("what is quoted or a comment is left alone") {
  for (const std::string text : {"SELECT ':c'", "SELECT 'it''s :c'", "SELECT \":c\"", "SELECT `:c`",
                                 "SELECT 1 -- :c and 'more\n", "SELECT /* :c */ 1", "SELECT 1 /* it's :c"}) {
    const auto statement = one(text + (text.back() == '\n' ? "+ 2" : ""));
    CHECK(statement.sql == text + (text.back() == '\n' ? "+ 2" : ""));
    CHECK(statement.markers.empty());
  }
  CHECK(one("SELECT ':c', :a -- :b\n, :b").sql == "SELECT ':c', $1 -- :b\n, $2");
}

TEST_CASE("names of tables are filled in, qualified and quoted") {
  TableNames names;
  names.schema = "app";
  names.lock = "locks";
  names.history = "past";
  CHECK(fill_in("{{lock}} {{status}} {{history}} {{waiter}} {{holder}} {{schema}}", names, in_double_quotes) ==
        "\"app\".\"locks\" \"app\".\"locks_status\" \"app\".\"past\" \"app\".\"locks_waiter\" \"app\".\"locks_holder\" "
        "\"app\"");
  names.schema.clear();
  CHECK(fill_in("{{lock}}", names, in_double_quotes) == "\"locks\"");
  CHECK(fill_in("nothing {here}", names, in_double_quotes) == "nothing {here}");
  CHECK_THROWS_AS(fill_in("{{tables}}", names, in_double_quotes), std::logic_error);
}

TEST_CASE("a name that is filled in is not searched for arguments") {
  TableNames names;
  names.schema = "odd:a";
  const auto statements = read("-- name: it(a)\nSELECT :a FROM {{lock}}", Marker::dollar, names);
  CHECK(statements.at("it", {"a"}).sql == "SELECT $1 FROM \"odd:a\".\"resource_lock\"");
}

TEST_CASE("a file that breaks the form is a defect") {
  CHECK_THROWS_AS(read("-- name: it(a)\nSELECT :b"), std::logic_error);
  CHECK_THROWS_AS(read("-- name: it(a)\nSELECT :"), std::logic_error);
  CHECK_THROWS_AS(read("-- name: it\nSELECT 1"), std::logic_error);
  CHECK_THROWS_AS(read("-- name: (a)\nSELECT 1"), std::logic_error);
  CHECK_THROWS_AS(read("-- name: it)a(\nSELECT 1"), std::logic_error);
  CHECK_THROWS_AS(read("-- name: it()\n-- only a comment\n"), std::logic_error);
  CHECK_THROWS_AS(read("-- name: it()\n;"), std::logic_error);
  CHECK_THROWS_AS(read("-- name: it()"), std::logic_error);
  CHECK_THROWS_AS(read("-- name: it()\nSELECT 1;\n-- name: it()\nSELECT 2"), std::logic_error);
}

TEST_CASE("a statement is asked for by its name and its arguments") {
  const auto statements = read("-- name: it(a, b)\nSELECT :a, :b");
  CHECK_NOTHROW(statements.at("it", {"a", "b"}));
  CHECK_THROWS_AS(statements.at("it", {"b", "a"}), std::logic_error);
  CHECK_THROWS_AS(statements.at("it", {"a"}), std::logic_error);
  CHECK_THROWS_AS(statements.at("other", {"a", "b"}), std::logic_error);
}

TEST_CASE("an empty file has no statements") { CHECK(read("").size() == 0); }
