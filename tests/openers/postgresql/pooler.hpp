// How a test puts PgBouncer in front of a PostgreSQL server.
#pragma once

#include "support/child.hpp"
#include "support/test_database.hpp"

#include <optional>
#include <string>

namespace dlock::test::postgresql {

// In the mode that lends a connection for a transaction. It asks nobody for a password.
class Pooler {
 public:
  // Throws std::runtime_error.
  Pooler(const Address& server, const std::string& user, const std::string& password, const std::string& database);

  Address address() const { return {"127.0.0.1", port_}; }

 private:
  const TemporaryFolder folder_;
  std::uint16_t port_ = 0;
  std::optional<Child> process_;
};

}  // namespace dlock::test::postgresql
