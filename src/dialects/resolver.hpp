// Finds the addresses of a host on a thread of its own, so that a name service that hangs holds nobody up.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/background_call.hpp"
#include "types/clock.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlock::dialects {

// Whether the text is an address already, which nobody has to be asked for.
bool is_address(const std::string& host) noexcept;

// getaddrinfo(3) knows no deadline, and so do the client libraries that call it. Threads: any. Owns: one thread at most
// for each host, which ends when the system's resolver does; nobody waits for it.
class Resolver {
 public:
  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // In the order in which they are to be tried. Throws Failure{refused}: there are none, or not in time.
  std::vector<std::string> addresses_of(const std::string& host, const Deadline& deadline);

 private:
  // No addresses: why.
  struct Found {
    std::vector<std::string> addresses{};
    std::string trouble{};
  };
  using Lookup = BackgroundCall<Found>;
  static Found look_up(const std::string& host);
  std::shared_ptr<Lookup> lookup(const std::string& host);

  AnnotatedMutex mutex_;
  std::map<std::string, std::shared_ptr<Lookup>> lookups_ GUARDED_BY(mutex_);  // those under way
};

}  // namespace dlock::dialects
