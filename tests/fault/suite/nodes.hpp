// A cluster whose nodes all take writes: where they are, and how one is killed and started again.
#pragma once

#include "support/test_database.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlock::test {

// Threads: one at a time. Owns: nothing; who started the cluster stops it.
class Nodes {
 public:
  // The cluster that a script under tests/servers has started, if there is one: DLOCK_TEST_CLUSTER is "SCRIPT DIR
  // HOST:PORT HOST:PORT …". The server under test is its first node.
  static std::optional<Nodes> of_environment();

  std::size_t size() const noexcept { return addresses_.size(); }
  const Address& address(std::size_t node) const { return addresses_.at(node); }

  void signal(std::size_t node, const std::string& name) const;
  void start() const;  // those that do not run; they get what they missed from the others

 private:
  void run(std::vector<std::string> arguments) const;

  std::string script_, folder_;
  std::vector<Address> addresses_;
};

}  // namespace dlock::test
