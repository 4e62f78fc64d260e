// How a line of a terminal is written over.
#include "progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace bench {

Progress::Progress(std::string scenario, bool quiet)
    : scenario_(std::move(scenario)), shown_(!quiet && ::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::say(const std::string& text) {
  if (shown_) fmt::print(stderr, "\r\x1b[K{}: {}", scenario_, text);
}

void Progress::part(double done) { say(fmt::format("{:.0f} %", 100 * done)); }

}  // namespace bench
