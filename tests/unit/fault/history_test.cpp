// This file knows that a line of a history says what was written, and that half a line says nothing.
#include "fault/suite/history.hpp"

#include <doctest/doctest.h>

using namespace dlock::test;

TEST_CASE("a line of a history is read as it was written") {
  for (int i = 0; i <= static_cast<int>(What::fault); ++i) {
    const Record written{17, static_cast<What>(i), "till/1", 42, -3, "with blanks\nand more", "a"};
    const auto line = written.line();
    CHECK(line.find('\n') == line.size() - 1);
    const auto read = Record::parse(line.substr(0, line.size() - 1));
    REQUIRE(read);
    CHECK(read->at == 17);
    CHECK(read->what == written.what);
    CHECK(read->name == "till/1");
    CHECK(read->token == 42);
    CHECK(read->time == -3);
    CHECK(read->text == "with blanks and more");
    CHECK(read->who.empty());
  }
}

TEST_CASE("half a line of a history, and an unknown word, say nothing") {
  const std::string line = Record{17, What::commit, "till/1", 42, 3, {}, {}}.line();
  CHECK(Record::parse(line.substr(0, line.size() - 1)));
  for (std::size_t size = 0; size + 1 < line.size(); ++size) CHECK_FALSE(Record::parse(line.substr(0, size)));
  CHECK_FALSE(Record::parse("17 stolen till/1 42 3 "));
  CHECK_FALSE(Record::parse("first commit till/1 42 3 "));
}

TEST_CASE("the clock of a history goes forward") {
  const auto before = boottime();
  CHECK(before > 0);
  CHECK(boottime() >= before);
}
