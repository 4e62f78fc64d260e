// The scenario "handoff": how soon after a release a waiter in another process has the lock, and how
// soon a wait ends that is no longer wanted.
#pragma once

#include "plot.hpp"
#include "samples.hpp"
#include "target.hpp"

#include <string>
#include <vector>

namespace bench {

struct HandoffOptions {
  Target target;
  double seconds = 60;
};

// Release to acquired, and the part of it in which release() ran.
struct Handoff {
  Nanoseconds acquired, release;
};

struct HandoffResult {
  Setup setup;
  // An uncontended acquire or release is one durable commit: right after another one; and after as long a pause as the
  // holder of a handoff makes, when processors and caches have turned to other things.
  Nanoseconds commits, paused_commits;
  Handoff listening, polling;  // the waiter listens; it only looks at intervals
  Nanoseconds deadline, stop;  // how late a wait returned after its deadline, after a stop request
  bool early = false;          // one returned before
};

// Alternates between the contenders for as long as options.seconds, once at least.
HandoffResult run_handoff(const HandoffOptions& options);

std::string as_text(const HandoffOptions& options, HandoffResult& result);
std::string as_json(const HandoffOptions& options, HandoffResult& result);
Plot as_plot(const HandoffOptions& options, HandoffResult& result);

}  // namespace bench
