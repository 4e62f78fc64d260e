// How a test asks what a refused argument was told.
#pragma once

#include <dlock/error.hpp>

#include <doctest/doctest.h>

#include <string>

namespace dlock::test {

// The text of the misuse that `call` throws: one line.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::misuse);
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  FAIL_CHECK("was not refused");
  return {};
}

inline bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace dlock::test
