// What can be read about somebody who waits for a name, and about those who hold it together.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/options.hpp>
#include <dlock/token.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace dlock {
inline namespace v0 {

// What a holder learns of those who wait for its lock: Lock::wanted.
struct Wanted {
  Duration waited{};            // of the one that has waited longest
  Mode mode = Mode::exclusive;  // the widest that one of them asks for: exclusive, before permits, before shared

  friend bool operator==(const Wanted&, const Wanted&) = default;
};

// One row of the waiters' table as it was when it was read. Who has a row: everybody who waits in turn
// (Fairness::fifo), whoever holds something else while waiting, or has a job, and of the others the first of each
// process, after a second.
struct Waiter {
  std::string name{};  // what it waits for
  std::string node{}, owner{}, label{};
  std::string actor{};          // its job: the same second half (16 digits) is the same job or thread
  Mode mode = Mode::exclusive;  // what it asks for; of one that waits as a node: exclusive
  std::int64_t ticket = 0;      // its number in the queue; 0: it is in none, and takes what it can get
  bool in_transaction = false;  // it waits to lock the name inside a transaction
  Duration waited{};
  std::optional<Duration> left{};  // until it gives up; empty: never
  // Who holds the name; empty: nobody does. Where several hold it, what Holder says of them: Engine::sharers has each.
  std::string holder_node{}, holder_label{}, holder_actor{};
  Token holder_token{};
};

// One of those who hold a name together (Mode::shared, Mode::permits), as it was when it was read.
struct Sharer {
  std::string name{};
  std::string node{}, owner{}, label{};
  std::string actor{};  // its job, as that of a Waiter
  Token token{};
  std::int64_t permits = 0;  // that it has; 0: it is a reader
  Duration held{};           // since the grant
  Duration left{};           // of its lease
};

}  // namespace v0
}  // namespace dlock
