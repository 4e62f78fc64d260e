// Who can be measured: dlock, and those named after --against.
#pragma once

#include "target.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// One client of one lock, which it takes and gives back again and again.
// Threads: one at a time; each client has its own. Fails: throws.
class Client {
 public:
  virtual ~Client() = default;
  virtual void acquire() = 0;
  virtual void release() = 0;
};

// Somebody who takes part.
struct Contender {
  std::string word;         // "dlock", "raw", …
  std::size_t clients = 1;  // how many take part at once
  // Opens them, with fresh connections; `names` has one for each.
  std::function<std::vector<std::unique_ptr<Client>>(const std::vector<std::string>& names)> open{};
  bool in_flight = false;  // they are requests of one thread (see in_flight.hpp), and `open` is empty
};

struct Field {
  Target target;
  std::size_t threads = 1, raw_connections = 32;
  unsigned connections = 0, combine = 0;  // of dlock's engine; 0: its default
  bool one_name = false;                  // the clients want the same lock
  bool by_statement = false;              // dlock's engine passes no lock on in memory
  dlock::Duration linger{};               // EngineOptions::linger of dlock's engine
  dlock::LockOptions lock{};              // how dlock's clients want it
  std::string redis;                      // where the Redis server is
};

// How the field's engines of dlock are opened.
dlock::EngineOptions engine_options(const Field& field);

// dlock: one engine for all threads.
Contender dlock_contender(const Field& field);

// "one": dlock again, with one client that has a lock for itself alone.
Contender one_client(const Field& field);

// "by_statement": dlock again, which passes no lock on in memory.
Contender by_statement(const Field& field);

// "linger": dlock again, whose locks linger for so long.
Contender lingering(const Field& field, dlock::Duration linger);

// Who `word` is. A peer that does not wait takes part in a throughput for one name with one client. Throws UsageError
// where there is no such peer.
Contender peer(const Field& field, std::string_view word);

}  // namespace bench
