// How a reaper goes through the rows of the table: some at a time, in the order of names.
#pragma once

#include "engine/breathing.hpp"
#include "engine/glob.hpp"
#include "store/reaper_table.hpp"
#include "types/clock.hpp"
#include "types/removal_pace.hpp"

#include <stop_token>
#include <string>
#include <vector>

namespace dlock::engine {

// `list` answers some rows, `work` gets what matches of each batch, and answers false to stop.
template <class List, class Work>
void each_batch(const Scope& scope, const RemovalPace& pace, const std::stop_token& stop, List list, Work work) {
  std::string after;
  for (BatchSize size(pace);;) {
    const auto begun = BootClock::now();
    auto rows = list(store::Some{scope.prefix, after, size.rows()});
    const bool last = rows.size() < size.rows();
    if (!rows.empty()) after = rows.back().name;
    std::erase_if(rows, [&](const auto& row) { return !scope.has(row.name); });
    if (!work(rows) || last || size.breathe(begun, stop)) return;
  }
}

// Of those who died while they shared a name, also in the order of owners. `list` gets the owner behind which it goes
// on.
template <class List, class Work>
void each_dead(const Scope& scope, std::size_t batch, const std::stop_token& stop, List list, Work work) {
  std::string name, owner;
  for (;;) {
    const auto begun = BootClock::now();
    std::vector<store::DeadHolder> dead = list(store::Some{scope.prefix, name, batch}, owner);
    const bool last = dead.size() < batch;
    if (!dead.empty()) name = dead.back().lease.name, owner = dead.back().owner;
    std::erase_if(dead, [&](const auto& one) { return !scope.has(one.lease.name); });
    if (!work(dead) || last || breathe(begun, stop)) return;
  }
}

}  // namespace dlock::engine
