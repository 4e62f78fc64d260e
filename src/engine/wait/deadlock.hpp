// What a deadlock between waiters looks like, who of them began later, and how it is put in words. When one is
// believed, and who gives way: deadlock_detector.hpp.
#pragma once

#include "store/waiter_table.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::engine {

// Waiters, each of whom waits for what the next one holds, and the last one for what the first one holds.
struct Cycle {
  std::vector<store::WaitEdge> edges;

  // The same waits for the same grants, and so a cycle that was there all the time between two looks.
  bool same_as(const Cycle& other) const;
  // How many of those who wait in it began later: 0 is exactly one of them.
  int younger_than(std::string_view waiter) const;
  // "A holds x, waits for y (job J, thread 1 of process 2); B holds y, waits for x (…)", A and B being labels
  std::string in_words() const;
};

// The shortest way on which these waits lead from that of `actor` back to it. Empty: they do not.
std::optional<Cycle> cycle_of(std::vector<store::WaitEdge> chain, std::string_view actor);

}  // namespace dlock::engine
