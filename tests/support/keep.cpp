// Names the places where a test may leave something.
#include "support/keep.hpp"

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace dlock::test {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

}  // namespace

bool keeps() { return !variable("DLOCK_TEST_KEEP").empty(); }

std::string place_to_keep(const std::string& what) {
  const auto test = variable("DLOCK_TEST_NAME");
  const auto folder =
      keeps() ? std::filesystem::path(variable("DLOCK_TEST_KEEP")) : std::filesystem::temp_directory_path();
  return (folder / (std::string(test.empty() ? "dlock-test" : test) + "." + what)).string();
}

}  // namespace dlock::test
