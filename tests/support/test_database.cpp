// Which databases can be opened, and which one this run is about.
#include "support/test_database.hpp"

#include <cstdlib>
#include <stdexcept>

namespace dlock::test {
namespace {

std::vector<const Opener*>& openers() {
  static std::vector<const Opener*> list;
  return list;
}

}  // namespace

Opener::Opener(std::string_view name_, Missing* missing_, std::unique_ptr<TestDatabase> (*test_database_)(),
               std::unique_ptr<TestDatabase> (*quiet_database_)(),
               std::unique_ptr<ServerTestDatabase> (*server_database_)(),
               std::unique_ptr<PrivateServer> (*private_server_)(),
               std::unique_ptr<PrivateServer> (*server_offering_)(Tls),
               std::unique_ptr<PrivateServer> (*server_with_)(const std::string&),
               std::vector<WeakServer> (*weak_servers_)(), std::unique_ptr<PrivateServer> (*replicating_server_)(),
               std::string_view listens_everywhere_)
    : name(name_),
      missing(missing_),
      test_database(test_database_),
      quiet_database(quiet_database_),
      server_database(server_database_),
      private_server(private_server_),
      server_offering(server_offering_),
      server_with(server_with_),
      weak_servers(weak_servers_),
      replicating_server(replicating_server_),
      listens_everywhere(listens_everywhere_) {
  openers().push_back(this);
}

const Opener& opener() {
  const char* wanted = std::getenv("DLOCK_TEST_DATABASE");
  std::string known;
  for (const auto* each : openers()) {
    if (wanted != nullptr && each->name == wanted) return *each;
    known += known.empty() ? "" : ", ";
    known += each->name;
  }
  throw std::runtime_error("DLOCK_TEST_DATABASE must name a database: " + known);
}

}  // namespace dlock::test
