// Grants that change hands beyond this process: taken charge of, renewed for others, and let go of without a release.
#pragma once

#include "engine/context.hpp"
#include "engine/inspector.hpp"
#include "engine/lease/adoptions.hpp"
#include "engine/lease/late_attempts.hpp"

#include <dlock/grant.hpp>

#include <memory>
#include <optional>

namespace dlock::engine {

// Threads: any.
class Adopter {
 public:
  Adopter(Context& context, Inspector& inspector, LateAttempts& late_attempts) noexcept
      : context_(context), inspector_(inspector), late_attempts_(late_attempts) {}

  // Empty: it is not a grant of the name.
  std::shared_ptr<Lease> adopt(const Name& name, const Grant& grant, const LockOptions& options);
  // One that nobody here has.
  bool renew(const Name& name, const Grant& grant, std::optional<Duration> lease);
  // Lets go of it, for who adopts it.
  void detach(const std::shared_ptr<Lease>& held);

 private:
  std::shared_ptr<Lease> take_over(const Name& name, const Grant& grant, const LockOptions& options);
  Duration lease_of(store::LeaseKey key, std::string_view heir, const Holder& row);
  void name_nobody(const Lease& held) noexcept;
  // Who hands in a grant that is over has let go of it: nobody tells of it as of one who died.
  void forget(const Name& name, const Grant& grant) noexcept;

  Context& context_;
  Inspector& inspector_;
  LateAttempts& late_attempts_;
  Adoptions adoptions_{};  // those that got no answer
};

}  // namespace dlock::engine
