// On what terms a lease is asked for: how long it is, how much of that is trusted, and which pace of renewals was
// chosen. When that has it renewed: renewal.hpp.
#pragma once

#include "engine/lease/lease.hpp"
#include "store/lock_table.hpp"

#include <dlock/engine.hpp>
#include <dlock/options.hpp>

namespace dlock::engine {

// Threads: any. Fails: Error{misuse} where nobody could keep to such terms.
class LeasePolicy {
 public:
  // Neither may end before it.
  LeasePolicy(const EngineOptions& options, const store::LockTable& table) noexcept
      : options_(options), table_(table) {}

  LeaseTerms terms_of(const LockOptions& options) const;
  LeaseTerms with_margin(LeaseTerms terms) const;
  void check_pace(const LeaseTerms& terms) const;
  Reentrance reentrance_of(const LockOptions& options) const;

 private:
  const EngineOptions& options_;
  const store::LockTable& table_;
};

}  // namespace dlock::engine
