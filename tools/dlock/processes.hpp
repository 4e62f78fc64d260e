// Which processes of a run are still there, from /proc, and the end of all of them.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace dlock::tools::run {

// Whether a process of that group is left that has not ended. Its first process, ended, may still wait to be reaped.
bool group_lives(pid_t group);

// Whether one is left that does not ignore all of `signals` (bit n - 1: signal n): what runs in the background is
// started so that it ignores what a person types to end what runs in front (a shell's "&"), or the end of the terminal
// (nohup).
bool group_heeds(pid_t group, std::uint64_t signals);
// Whether one is left that is stopped.
bool group_is_stopped(pid_t group);

// Kills that group, and whatever the calling process has as children in its own session: with PR_SET_CHILD_SUBREAPER
// these are, one generation after the other, all processes that descend from it, whatever group they moved to. Comes
// back when none is left, except those it has no right to kill. The group's first process must not have been reaped, so
// that its number cannot be another group's. `group` -1: none.
void kill_all(pid_t group);

}  // namespace dlock::tools::run
