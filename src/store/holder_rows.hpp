// How a row of the table reads as what is known of a name.
#pragma once

#include "store/lock_table.hpp"
#include "types/row.hpp"

#include <dlock/holder.hpp>

#include <cstddef>
#include <string_view>

namespace dlock::store {

// What one asks for, or has held; of a node, and of what is not known: exclusive.
Mode mode_of(std::string_view word);

// From those of the statements "look" and "look_to_join".
Availability availability_of(const Answer& answer);

// From the columns of the statements "inspect" and "list".
Holder holder_of(const Answer& answer, std::size_t row);

}  // namespace dlock::store
