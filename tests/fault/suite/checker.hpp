// What must be true of a history and of the books that the database has in the end.
#pragma once

#include "fault/suite/history.hpp"

#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

// A transfer as the data table has it. `seq` is the order of commits under one lock, counted in the transactions.
struct Transfer {
  std::string id, name;
  long long seq = 0, token = 0, source = 0, target = 0, amount = 0;
};

struct Account {
  long long id = 0, opening = 0, balance = 0;
};

// What the database says when all is over.
struct Books {
  std::vector<Transfer> transfers;
  std::vector<Account> accounts;
  std::map<std::string, long long> tokens;  // of the lock table, by name
};

enum class Rule {
  token_repeated,      // two grants of one name have the same token
  token_fell,          // a grant that was asked for after another was answered has the smaller token
  trust_overlapped,    // two holders trusted their leases at the same moment, and did not share the name
  too_many_permits,    // more permits were trusted at one moment than there are
  stale_commit,        // a transaction committed under an older token after one under a newer token
  commit_missing,      // an acknowledged transfer is not in the books
  commit_unaccounted,  // a transfer is in the books that was refused, or failed, or that nobody began
  grant_forgotten,     // the lock table's token is smaller than that of an acknowledged grant
  loss_untold,         // a lease was lost, and lost() did not say so
  adopted_twice,       // of two who adopted the same grant both have it
  sums_wrong,          // balances are not what the transfers make them
  read_unbalanced,     // what was read under a lock that was trusted, or fenced, does not balance
};

std::string_view to_string(Rule rule) noexcept;

struct Violation {
  Rule rule{};
  std::string text;
};

std::ostream& operator<<(std::ostream& out, const Violation& violation);

// Every breach of a rule. Who was released by force, or lived through a step of the database's clock, may have trusted
// his lease together with the next holder, and read meanwhile; all other rules hold for him too, and these are what the
// fence is for. Who shares a name is released by force together with the others.
std::vector<Violation> violations(const History& history, const Books& books);

// How often each thing happened.
std::map<What, std::size_t> counts(const History& history);

}  // namespace dlock::test
