// Names the leases for a statement that renews, and reads what it has answered: a number for each lease, 0 skipped, 1
// renewed, or one more than what it says of those who wait.
#pragma once

#include "store/lock_table.hpp"
#include "types/row.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace dlock::store {

// For a statement that renews many, four a lease; they point into the keys.
std::vector<Argument> renewal_arguments(std::span<const LeaseKey> keys);

// What a number says of those who wait: 4 times the microseconds that the first of them has waited, and 1 if they all
// want to share the name, 2 if they want permits, 3 if one wants it alone. 0: nobody does.
std::optional<Wanted> wanted_of(std::int64_t number);

// Of many: a row each, with the owner and the number, and none for what is lost.
std::vector<Renewal> renewed_many(std::span<const LeaseKey> keys, const Answer& answer);

// Of one, whose row was matched or not; the answer may have a row that says what wanted_of() reads.
Renewal renewed_one(const Answer& answer);

// How leases of each kind are renewed.
struct RenewalKinds {
  std::function<std::vector<Renewal>(std::span<const LeaseKey>)> plain, shared;
};

// Of all kinds, in their order. Where one of them fails, what others were answered is not forgotten over it.
std::vector<Renewal> renew_each(std::span<const LeaseKey> keys, const RenewalKinds& kinds);

}  // namespace dlock::store
