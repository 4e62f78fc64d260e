// This file knows what the entries of a row look like as text.
#include "store/node_entries.hpp"

#include <doctest/doctest.h>

#include <string>

using dlock::store::EntrySet;

TEST_CASE("a set of entries reads as it was written") {
  CHECK(EntrySet("").empty());
  CHECK(EntrySet("").text().empty());
  const EntrySet two(";aa=1700000000000000;bb=0000000000000005;");
  CHECK(two.has("aa"));
  CHECK(two.has("bb"));
  CHECK_FALSE(two.has("a"));
  CHECK(two.text() == ";aa=1700000000000000;bb=0000000000000005;");
}

TEST_CASE("of the others only those stay whose end is still to come") {
  const EntrySet three(";aa=0000000000000010;bb=0000000000000020;cc=0000000000000030;");
  CHECK(three.others("cc", 0).text() == ";aa=0000000000000010;bb=0000000000000020;");
  CHECK(three.others("cc", 10).text() == ";bb=0000000000000020;");
  CHECK(three.others("aa", 30).empty());
}

TEST_CASE("what is not an entry is left out") {
  const EntrySet odd(";;aa;bb=;cc=x;=;dd=0000000000000001");
  CHECK(odd.text() == ";dd=0000000000000001;");
}

TEST_CASE("there is room for as many entries as the column takes, in every database") {
  std::string text = ";";
  int count = 0;
  while (EntrySet(text).room()) {
    const auto number = std::to_string(count++);
    text += std::string(32 - number.size(), 'a') + number + "=1700000000000000;";
  }
  CHECK(count == 81);
  CHECK(text.size() <= 4096);
  CHECK(text.size() + 50 > 4096);
  CHECK(EntrySet(text).text().size() == text.size());
}
