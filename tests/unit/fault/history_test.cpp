// A line of a history says what was written, and half a line says nothing.
#include "fault/suite/history.hpp"
#include "fault/suite/kept_run.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

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

TEST_CASE("what a record says of a share and of a reading is read as it was written") {
  CHECK(Share{}.text().empty());
  CHECK(Share::parse("").mode == Share::Mode::exclusive);
  CHECK(Share::parse(Share{Share::Mode::shared}.text()).mode == Share::Mode::shared);
  const auto permits = Share::parse(Share{Share::Mode::permits, 2, 3}.text());
  CHECK(permits.mode == Share::Mode::permits);
  CHECK(permits.permits == 2);
  CHECK(permits.limit == 3);
  const auto reading = Reading::parse(Reading{{7, -98}, {9, 102}}.text());
  REQUIRE(reading);
  CHECK(reading->first.account == 7);
  CHECK(reading->first.balance == -98);
  CHECK(reading->second.account == 9);
  CHECK(reading->second.balance == 102);
  CHECK_FALSE(Reading::parse("7: 98, 9"));
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

TEST_CASE("a run that was kept is read as it was, and judged the same") {
  const TemporaryFolder folder;
  KeptRun run;
  run.history.push_back({5, What::grant, "till/1", 7, 4, "", "teller0.1"});
  run.history.push_back({6, What::fault, "-", 0, 5, "killed and started again", ""});
  run.books.tokens["till/1"] = 6;  // less than what was granted
  run.books.accounts.push_back({1, 100, 90});
  run.books.transfers.push_back({"a-1", "till/1", 1, 7, 1, 2, 10});
  keep_run(folder.path() + "/run", run);

  const auto read = read_run(folder.path() + "/run");
  REQUIRE(read.history.size() == 2);
  CHECK(read.history[0].who == "teller0.1");
  CHECK(read.history[0].line() == run.history[0].line());
  CHECK(read.history[1].text == "killed and started again");
  CHECK(read.books.accounts.at(0).balance == 90);
  CHECK(read.books.transfers.at(0).id == "a-1");
  const auto before = violations(run.history, run.books), after = violations(read.history, read.books);
  REQUIRE(before.size() == after.size());
  REQUIRE_FALSE(before.empty());
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i].text == after[i].text);
  CHECK_THROWS_AS(read_run(folder.path()), std::runtime_error);
}
