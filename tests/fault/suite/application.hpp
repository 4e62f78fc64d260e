// How an application that has a database already is connected to it: with a session of its own, that
// knows nothing of locks. Each folder under tests/openers says it for one database, in its application.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace soci {
class session;
}

namespace dlock::test {

// One constant object a database, which enters itself into a list.
struct Application {
  // A session behind a URL, as a TestDatabase gives it.
  using Connect = std::unique_ptr<soci::session>(const std::string& url);

  Application(std::string_view name, Connect* connect);

  std::string_view name;
  Connect* connect;
};

// That of the database that DLOCK_TEST_DATABASE names.
const Application& application();

}  // namespace dlock::test
