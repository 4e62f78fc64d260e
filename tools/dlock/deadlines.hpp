// The arithmetic of the lock-loss contract: the command is dead before its lease can be somebody else's.
#pragma once

#include <dlock/duration.hpp>

#include <optional>
#include <string>

namespace dlock::tools::run {

struct Times {
  Duration ttl{}, renew_every{}, kill_after{}, safety{};
};

// What was written on the command line; what is unset is computed from the ttl.
struct Chosen {
  std::string ttl = "30s";
  std::optional<std::string> renew_every{}, kill_after{};
};

// safety = min(max(500 ms, ttl/20), ttl/6); renew_every = ttl/3; kill_after = min(5 s, ttl/6). With t0 the moment the
// last successful renewal was sent, the command is told to end at t0 + ttl - kill_after - safety and killed at
// t0 + ttl - safety. Throws UsageError unless ttl >= 1 s and ttl >= 2 renew_every + kill_after + safety; it names the
// smallest ttl that would do.
Times settle(const Chosen& chosen);

}  // namespace dlock::tools::run
