// Lock tables that are made for a measurement and taken away after it.
#pragma once

#include "progress.hpp"
#include "target.hpp"

#include <cstdint>
#include <string>

namespace bench {

// A lock table of its own beside the one that is in use. One that was left behind by a killed run is taken away first.
// Needs the rights of dlock-migrate.
class Scratch {
 public:
  Scratch(const Target& target, const std::string& table);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const Target& target() const noexcept { return target_; }

  // Idle rows, named row_name(0) to row_name(count - 1).
  void fill(std::int64_t count, Progress& progress);

 private:
  Target target_;
};

std::string row_name(std::int64_t number);

}  // namespace bench
