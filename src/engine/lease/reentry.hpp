// Entering again what is held: when that takes a statement, and when it is refused. Who may enter, and how often what
// is entered: reentrance_table.hpp.
#pragma once

#include "engine/context.hpp"
#include "engine/grant_request.hpp"
#include "engine/lease/lease_changes.hpp"
#include "engine/lease/releasing.hpp"

#include <memory>

namespace dlock::engine {

// Threads: any.
class Reentry {
 public:
  Reentry(Context& context, LeaseChanges& changes, Releaser& releaser) noexcept
      : context_(context), changes_(changes), releaser_(releaser) {}

  // Empty: there is nothing to enter, or it was lost; then a new grant is to be asked for.
  std::shared_ptr<Lease> reenter(const Name& name, const LockOptions& options, Instant deadline);
  // What another thread of the job was granted since the request was made. Empty: nothing.
  std::shared_ptr<Lease> enter_by_job(GrantRequest& request, Instant deadline);
  // How often the calling thread, or its job, has entered a lease that it holds and can trust.
  int hold_count(const Name& name);

 private:
  bool refresh(const std::shared_ptr<Lease>& held, const LockOptions& options, Instant deadline);

  Context& context_;
  LeaseChanges& changes_;
  Releaser& releaser_;
};

}  // namespace dlock::engine
