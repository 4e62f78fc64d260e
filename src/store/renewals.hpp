// Names the leases for a statement that renews, and reads what it has answered: a number for each lease, 0 skipped, 1 renewed, 2 renewed and wanted.
#pragma once

#include "store/lock_table.hpp"
#include "types/row.hpp"

#include <functional>
#include <span>
#include <vector>

namespace dlock::store {

// For a statement that renews many, four a lease; they point into the keys.
std::vector<Argument> renewal_arguments(std::span<const LeaseKey> keys);

// Of many: a row each, with the owner and the number, and none for what is lost.
std::vector<Renewed> renewed_many(std::span<const LeaseKey> keys, const Answer& answer);

// Of one, whose row was matched or not; the answer may have a row that says whether it is wanted.
Renewed renewed_one(const Answer& answer);

// How leases of each kind are renewed.
struct RenewalKinds {
  std::function<std::vector<Renewed>(std::span<const LeaseKey>)> plain, shared;
};

// Of all kinds, in their order. Where one of them fails, what others were answered is not forgotten over it.
std::vector<Renewed> renew_each(std::span<const LeaseKey> keys, const RenewalKinds& kinds);

}  // namespace dlock::store
