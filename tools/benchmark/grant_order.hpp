// What must be true of the grants of a herd.
#pragma once

#include "herd.hpp"
#include "seats.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace bench {

// By owner.
using Tickets = std::map<std::string, std::int64_t>;

// Fills in what became of the waiters after the release: their times, and what was wrong. The first `threads` seats are
// one process's, each of the others is a process of its own. `tickets`: the order that must have been kept; or none.
void judge(std::span<const Seat> seats, std::size_t threads, std::int64_t released, const Tickets* tickets,
           HerdResult& result);

}  // namespace bench
