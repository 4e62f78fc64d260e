// An acquire from its beginning to its end: it enters, tries, waits, and tells what came of that.
#pragma once

#include "engine/attempts.hpp"
#include "engine/context.hpp"
#include "engine/grant_request.hpp"
#include "engine/lease/late_attempts.hpp"
#include "engine/lease/lingering.hpp"
#include "engine/lease/reentry.hpp"
#include "engine/lease/releasing.hpp"
#include "engine/patience.hpp"

#include <dlock/error.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace dlock::engine {

// What became of a request. Empty: busy, or out of patience.
struct Acquired : std::shared_ptr<Lease> {
  Acquired(std::shared_ptr<Lease> lease = nullptr, bool locked = false, bool was_entered = false) noexcept
      : std::shared_ptr<Lease>(std::move(lease)), row_locked(locked), entered(was_entered) {}
  bool row_locked;  // empty since another transaction has the row locked; nobody was seen who holds it
  bool entered;     // what its thread or job held already
};

// What an acquire needs, however it goes on: on its caller's thread, without one, or of several names.
// Threads: any. Owns nothing.
struct AcquireParts {
  Context& context;
  Lingering& lingering;
  LateAttempts& late_attempts;
  Releaser& releaser;
  Reentry& reentry;
  Attempts& attempts;
};

// Threads: any.
class Acquirer {
 public:
  explicit Acquirer(const AcquireParts& its_parts) noexcept : parts(its_parts) {}

  Acquired acquire(const Name& name, const LockOptions& options, const Patience& patience);

  // What comes of a request that was granted, or has run out of patience, or is broken.
  std::shared_ptr<Lease> concluded(GrantRequest& request, const Patience& patience, std::shared_ptr<Lease> held,
                                   const std::exception_ptr& broken);
  void tell_deadlock(const GrantRequest& request, const Error& error);

  const AcquireParts parts;

 private:
  std::shared_ptr<Lease> take_lingering(const Name& name, const LockOptions& options, Reentrance reentrance,
                                        const Patience& patience);
  std::shared_ptr<Lease> told(GrantRequest& request, const Patience& patience, std::shared_ptr<Lease> held,
                              const std::exception_ptr& broken);
};

}  // namespace dlock::engine
