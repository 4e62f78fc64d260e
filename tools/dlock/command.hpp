// How the command of a run is started: fork, exec, a process group of its own.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dlock::tools::run {

struct Command {
  std::vector<std::string> words;  // executed directly, never through a shell
  bool no_stdin = false;
  bool in_foreground = false;  // of the terminal at its standard input
  sigset_t ignored{};          // the signals that it starts with as ignored
  sigset_t mask{};             // the signal mask it starts with
};

// NAME=VALUE settings that replace inherited ones of the same name; a NAME alone takes an inherited one away.
using Settings = std::vector<std::string>;

struct Launched {
  pid_t pid = -1;   // -1: could not be started
  int error = 0;    // errno of that
  int report = -1;  // a descriptor that says errno if exec failed, and is at its end if it worked
};

// Starts it as the leader of a process group. It is killed when the calling process ends, which must have one thread.
Launched launch(const Command& command, const Settings& settings);

}  // namespace dlock::tools::run
