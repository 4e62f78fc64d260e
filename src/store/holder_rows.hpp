// This file knows how a row of the table reads as what is known of a name.
#pragma once

#include "types/row.hpp"

#include <dlock/holder.hpp>

#include <cstddef>

namespace dlock::store {

// From the columns of the statements "inspect" and "list".
Holder holder_of(const Answer& answer, std::size_t row);

}  // namespace dlock::store
