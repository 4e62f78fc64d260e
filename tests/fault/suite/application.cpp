// Which databases an application can be connected to.
#include "fault/suite/application.hpp"

#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace dlock::test {
namespace {

std::vector<const Application*>& applications() {
  static std::vector<const Application*> list;
  return list;
}

}  // namespace

Application::Application(std::string_view name_, Connect* connect_) : name(name_), connect(connect_) {
  applications().push_back(this);
}

const Application& application() {
  const char* wanted = std::getenv("DLOCK_TEST_DATABASE");
  for (const auto* each : applications())
    if (wanted != nullptr && each->name == wanted) return *each;
  throw std::runtime_error("DLOCK_TEST_DATABASE must name a database with an application.cpp under tests/openers");
}

}  // namespace dlock::test
