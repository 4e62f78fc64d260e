// Engines of dlock in processes of their own, which take part in a throughput together.
#pragma once

#include "contender.hpp"
#include "helper.hpp"
#include "throughput_round.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

// Threads: one. Make it before this process opens anything: see Helper.
class Engines {
 public:
  Engines(const Field& field, std::size_t count);

  // Opens an engine in each process, and a client for each name, which are shared out among them.
  void open(const std::vector<std::string>& names);
  // Lets them run, and closes them.
  std::vector<Times> run(const ThroughputRound& round);

 private:
  std::vector<Helper> helpers_{};
  std::vector<ThroughputRound> offsets_{};  // of each client that is open
};

}  // namespace bench
