// Below which floor rows may go: one that has been there for the whole grace, by this process's own clock.
#pragma once

#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <dlock/duration.hpp>
#include <dlock/token.hpp>

#include <optional>
#include <utility>

namespace dlock::engine {

// What one process has seen of the floor. Threads: one at a time.
class FloorGrace {
 public:
  explicit FloorGrace(Duration grace) : grace_(grace) {}

  // It is there: the grace of the first one begins.
  void saw(Token floor) {
    if (!seen_) seen_ = Seen{floor, BootClock::now()};
  }

  // What was seen is worth nothing once the floor is found lower: a restore, or a failover, has forgotten that it was
  // raised, and who reads it now may begin below. Removing reads it again by itself.
  void found(Token floor) {
    if (seen_ && floor < seen_->floor) seen_.reset();
    if (safe_ && floor < *safe_) safe_.reset();
  }

  // Empty: none has been there for the grace yet.
  std::optional<Token> below() {
    if (seen_ && BootClock::now() - seen_->when >= (planted("no_grace") ? Duration{} : grace_))
      safe_ = std::exchange(seen_, std::nullopt)->floor;
    return safe_;
  }

 private:
  struct Seen {
    Token floor{};
    Instant when{};
  };
  const Duration grace_;
  std::optional<Seen> seen_;   // has not been there for the grace yet
  std::optional<Token> safe_;  // has
};

}  // namespace dlock::engine
