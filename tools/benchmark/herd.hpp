// The scenario "herd": a thousand threads of one process and fifty processes wait for one name.
#pragma once

#include "plot.hpp"
#include "samples.hpp"
#include "target.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct HerdOptions {
  Target target;
  std::size_t threads = 1000, processes = 50;  // waiters in one process; processes with one waiter each
  bool fifo = false;
  double seconds = 5;  // how long the lock is held while the database's work is counted
};

// What was done per second.
struct Rate {
  std::optional<double> statements{};  // empty: the database counts none
  double bytes_written = 0;            // to the database's log
  double processor = 0;                // seconds, of all waiters together
  std::int64_t connections = 0;
};

struct HerdResult {
  Setup setup;
  Nanoseconds commits;  // before, with nobody waiting
  Rate idle, held;      // the same engines, before anybody waits; while all of them wait
  // From the release to each grant: the threads', the processes'.
  Nanoseconds threads, processes;
  double all = 0;               // until the last one had released, in seconds
  std::size_t longest_row = 0;  // most grants in a row inside one process while another one waited
  std::string wrong;            // empty: each had it once, never two at once, and with fifo in the order of tickets
};

HerdResult run_herd(const HerdOptions& options);

std::string as_text(const HerdOptions& options, HerdResult& result);
std::string as_json(const HerdOptions& options, HerdResult& result);
Plot as_plot(const HerdOptions& options, HerdResult& result);

}  // namespace bench
