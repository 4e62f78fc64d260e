// Shell patterns match the same names in every locale.
#include "engine/glob.hpp"

#include <doctest/doctest.h>

#include <clocale>
#include <string>

using dlock::engine::matches;

TEST_CASE("a pattern matches characters, not bytes, whatever the locale of the process") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* locale : {"C", "C.UTF-8"}) {
    CAPTURE(locale);
    REQUIRE(std::setlocale(LC_ALL, locale) != nullptr);
    CHECK(matches("?", "a"));
    CHECK(matches("?", "\u00e4"));
    CHECK(matches("job/[\u00e4-\u00f6]", "job/\u00f4"));
    CHECK_FALSE(matches("?", "\u00e4\u00e4"));
    CHECK(matches("a*\u4e16", "a\u754c\u4e16"));
    CHECK(matches("a\\*", "a*"));
    CHECK_FALSE(matches("a\\*", "ab"));
    CHECK(matches("*", ""));
    CHECK(std::setlocale(LC_ALL, nullptr) == std::string(locale));
  }
  std::setlocale(LC_ALL, before.c_str());
}
