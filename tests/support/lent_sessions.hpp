// What is left in the sessions that a pooler lends.
#pragma once

#include "support/caller.hpp"
#include "support/test_database.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlock::test {

// The application's own connections through the same pooler. While each has a transaction open, it has a session for
// itself: together they are all that the pooler lends.
class LentSessions {
 public:
  LentSessions(const ServerTestDatabase& test_database, const Address& pooler) {
    for (int i = 0; i < lent_at_most; ++i) callers_.push_back(std::make_unique<Caller>(test_database, pooler));
  }

  // One line a session.
  std::string state(const ServerTestDatabase& test_database) {
    std::string states;
    for (const auto& caller : callers_) caller->run("BEGIN");
    for (const auto& caller : callers_) {
      for (const auto& trace : test_database.session_traces()) states += caller->text(trace) + " ";
      states += '\n';
    }
    for (const auto& caller : callers_) caller->run("ROLLBACK");
    return states;
  }

 private:
  static constexpr int lent_at_most = 3;  // as the pooler is set up
  std::vector<std::unique_ptr<Caller>> callers_;
};

}  // namespace dlock::test
