// What can be done to clients and their database.
#pragma once

#include "fault/suite/clients.hpp"
#include "fault/suite/nodes.hpp"
#include "support/proxy.hpp"
#include "support/test_database.hpp"

#include <dlock/duration.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlock::test {

// One kind of fault. When inflict() has returned, it is over; when it throws, it was not inflicted.
struct Nemesis {
  std::string name;
  std::function<void()> inflict;
};

// What they are done to.
struct Victims {
  Clients& clients;
  TestDatabase& test_database;
  Duration lease{};
  // Where there is a server; else nullptr, and empty.
  ServerTestDatabase* server = nullptr;
  PrivateServer* machine = nullptr;
  const Nodes* nodes = nullptr;                            // or several that know the same
  std::vector<std::unique_ptr<Proxy>>* proxies = nullptr;  // one a client
};

// Names that a nemesis takes for itself begin with this.
inline const std::string quiet_name = "quiet";

// Stops a client that holds a lock until another one has written under it, or it is long past its lease. True: another
// one has. Throws if nobody holds a lock.
bool pause_past_lease(Victims& victims);

// All that make sense on this database, in any order.
std::vector<Nemesis> nemeses(Victims& victims);

}  // namespace dlock::test
