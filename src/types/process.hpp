// This file knows whether this process is still the one an object was made in.
#pragma once

namespace dlock {

// How many fork() calls lie between the start of the first process and this one. Costs one load.
unsigned fork_generation() noexcept;

// Remembers the process it was made in.
class Birthplace {
 public:
  Birthplace() noexcept : generation_(fork_generation()) {}
  bool forked() const noexcept { return generation_ != fork_generation(); }

 private:
  unsigned generation_;
};

}  // namespace dlock
