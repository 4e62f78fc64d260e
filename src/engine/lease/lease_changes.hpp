// What may be changed of a lease while it is held: its length, its mode, and what it says.
#pragma once

#include "engine/context.hpp"

#include <dlock/lock.hpp>

#include <memory>
#include <string_view>

namespace dlock::engine {

// Threads: any. Fails: Error{lost} where the database says that it is no longer ours, and then it is lost.
class LeaseChanges {
 public:
  explicit LeaseChanges(Context& context) noexcept : context_(context) {}

  struct Extension {
    Duration lease, closed_for{};
    bool only_longer = false;  // a lease that is longer already stays so
  };
  // Gives it another length.
  void extend(const std::shared_ptr<Lease>& held, const Extension& extension, Instant by);
  // Extends it where less than `left` of it can be trusted, by the lease it has or by one that is long enough.
  void ensure(const std::shared_ptr<Lease>& held, Duration left);

  // From an exclusive lease to a shared one, without a gap, and back: empty if it is not alone. The old one has ended
  // then.
  std::shared_ptr<Lease> downgrade(const std::shared_ptr<Lease>& held);
  std::shared_ptr<Lease> upgrade(const std::shared_ptr<Lease>& held);

  // Writes other metadata into its row.
  void update_metadata(const std::shared_ptr<Lease>& held, std::string_view metadata, Keep keep);

 private:
  bool is_there(const Lease& held);
  void check_convertible(const Lease& held, Mode from);
  std::shared_ptr<Lease> convert(const std::shared_ptr<Lease>& held, Mode to);

  Context& context_;
};

}  // namespace dlock::engine
