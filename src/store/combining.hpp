// This file knows how acquires and releases are sent: alone where a connection is free, many in one statement where they
// have to wait for one.
#pragma once

#include "store/convoy.hpp"
#include "store/lock_table.hpp"
#include "store/pool.hpp"
#include "store/ringing.hpp"

#include <cstddef>
#include <memory>

namespace dlock::store {

// Threads: any. Must not outlive what it is given.
class Combining {
 public:
  // `most`: so many requests at most in one statement; 1: each is sent alone.
  Combining(const dialects::Statements& statements, Pool& pool, Ringing& ringing, std::size_t most);
  ~Combining();
  Combining(const Combining&) = delete;
  Combining& operator=(const Combining&) = delete;

  Granted acquire(const Ask& ask, Deadline deadline);
  bool release(const Claim& claim, Deadline deadline);

 private:
  struct Road;
  struct Acquires;
  struct Releases;

  const std::unique_ptr<const Road> road_;
  const std::size_t most_;
  std::unique_ptr<Convoy<Acquires>> acquires_;
  std::unique_ptr<Convoy<Releases>> releases_;
};

}  // namespace dlock::store
