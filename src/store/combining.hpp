// How acquires and releases are sent: alone where a connection is free; where they have to wait for one, or come
// together, many in one statement, or both kinds in one commit.
#pragma once

#include "store/lock_table.hpp"
#include "store/pool.hpp"
#include "store/release_notice.hpp"
#include "store/request_batcher.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dlock::store {

// Threads: any. Must not outlive what it is given.
class Combining {
 public:
  // `most`: so many requests at most in one statement; 1: each is sent alone.
  Combining(const dialects::Statements& statements, Pool& pool, ReleaseNotice& notice, std::size_t most);
  ~Combining();
  Combining(const Combining&) = delete;
  Combining& operator=(const Combining&) = delete;

  Granted acquire(const AcquireRequest& ask, Deadline deadline);
  Left release(const LeaseKey& key, Deadline deadline);
  // See LockTable.
  std::vector<std::optional<Granted>> acquire_together(std::span<const AcquireRequest> asks, Deadline deadline);
  std::vector<std::optional<Left>> release_together(std::span<const LeaseKey> keys, Deadline deadline);
  std::vector<LeaseStatus> lease_status(std::span<const LeaseKey> keys, Deadline deadline);
  std::optional<std::size_t> first_busy(std::span<const std::string_view> names, Deadline deadline);

  // Of all that uses the pool.
  Traffic traffic() const;

 private:
  struct Lane;
  struct AcquireOperation;
  struct ReleaseOperation;
  struct EitherOperation;
  std::unique_ptr<RequestBatcher<EitherOperation>> batcher(bool shares) const;
  template <class Operation>
  auto together(const Operation& operation, std::span<const typename Operation::View> views, Deadline deadline);

  const std::unique_ptr<Lane> lane_;
  const std::size_t most_;
  // Each for its kind; and both, where commits are slow.
  std::unique_ptr<RequestBatcher<EitherOperation>> acquires_, releases_, both_;
  std::atomic<std::uint64_t> batches_{0}, batched_{0};  // of those that came together
};

}  // namespace dlock::store
