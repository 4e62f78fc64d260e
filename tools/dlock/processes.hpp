// Which processes of a run are still there, from /proc, and the end of all of them.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace dlock::tools::run {

// Opens /proc, for all that follows: later there may be no descriptor left. Once before the guardian is made, which is
// spared with the process group of that moment, and again in it, since two processes would share one place in the list.
// Threads, of everything here: one.
void open_processes() noexcept;
// Whether that is the /proc of this process's own pid namespace. Where it is another one's, or none is mounted, its
// numbers mean other processes, and none is looked at: then only the kernel is asked about groups, which counts who has
// ended, too, until it is reaped.
bool processes_are_known() noexcept;

// Whether a process of that group is left that has not ended. Its first process, ended, may still wait to be reaped,
// where processes are known. Where that cannot be found out at the moment: yes.
bool group_lives(pid_t group);

// Whether one is left that does not ignore all of `signals` (bit n - 1: signal n): what runs in the background is
// started so that it ignores what a person types to end what runs in front (a shell's "&"), or the end of the terminal
// (nohup). Where processes are not known, nobody is taken to ignore anything.
bool group_heeds(pid_t group, std::uint64_t signals);
// Whether one is left that is known to be stopped.
bool group_is_stopped(pid_t group);

// Kills that group, and whatever the calling process has as children in its own session, with the groups that they
// moved to: with PR_SET_CHILD_SUBREAPER these are, one generation after the other, all processes that descend from it.
// Comes back when none is left, except those it has no right to kill. The group's first process must not have been
// reaped, so that its number cannot be another group's. `group` -1: none. Where processes are not known, only the group
// is killed, and waited for as long as the kernel should need for that.
void kill_all(pid_t group);

}  // namespace dlock::tools::run
