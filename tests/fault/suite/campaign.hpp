// A whole run: clients, a nemesis, and what is proved in the end.
#pragma once

#include "fault/suite/checker.hpp"

#include <dlock/duration.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlock::test {

struct Nemesis;
struct Victims;

// What a run has come to, so far or in the end.
struct Report {
  std::map<std::string, std::size_t> faults;  // inflicted, by kind
  struct Spared {
    std::size_t times = 0;
    std::string why;  // the last time
  };
  std::map<std::string, Spared> spared;  // tried, and not inflicted, by kind
  std::map<What, std::size_t> times;
  std::vector<Violation> violations;
  std::vector<std::string> troubles;  // of the suite itself: who is stuck, or ended otherwise than told
  std::size_t resident = 0;           // bytes of memory that the largest client had, when it was last looked at
  std::string kept;                   // where the run is, if there is a violation or a trouble
  unsigned seed = 0;                  // of the order of faults: DLOCK_TEST_SEED, or by chance

  std::size_t count(What what) const;
  std::size_t inflicted() const;  // of all kinds
  std::string text() const;
};

// What a run of every fault there is waits for in the end, and how often it has to have happened: a run that lacks one
// of them then has not shown what it is for. What chance would bring about too rarely clients do in their first turns.
struct Wanted {
  What what;
  std::size_t times;
};
inline constexpr Wanted wanted[]{
    {What::grant, 1},   {What::busy, 1},       {What::loss, 1},          {What::refused, 1},
    {What::read, 10},   {What::work, 10},      {What::longer, 4},        {What::shorter, 4},
    {What::adopted, 4}, {What::savepoint, 4},  {What::slow_observer, 1}, {What::batch, 1},
    {What::ticket, 1},  {What::downgraded, 1}, {What::upgraded, 1},      {What::lingered, 1}};

struct Plan {
  bool fenced = true;
  std::size_t clients = 4;
  Duration lease{};
  std::chrono::milliseconds length{};  // at least; and each kind of fault at least once
  std::size_t faults = 0;              // at least; 0: as many as come
  // Only holders are paused, just before they write, until this is enough; then the run ends. Empty: every fault there
  // is.
  std::function<bool(const Report&)> paused_enough{};
  // The faults there are; empty: all that make sense on this database. A run in which one of them was never inflicted
  // has a trouble that names it.
  std::function<std::vector<Nemesis>(Victims&)> nemeses{};
  std::function<void(const Report&)> progress{};  // after every fault
};

// Short, so that every fault has its turn, and not so short that a busy machine loses all there are.
Duration lease_of_tellers();

// On the database that DLOCK_TEST_DATABASE names: on a server of its own, or in a file.
Report run(const Plan& plan);

}  // namespace dlock::test
