// What a thread of a client sees of the others: what they have let go of, and who waits.
#pragma once

#include "fault/suite/history.hpp"

#include <dlock/engine.hpp>

#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace dlock::test {

// What the threads of a process have let go of last, by name. Threads: any.
class LetGo {
 public:
  void add(const std::string& name, long long token, Nanoseconds asked);

  enum class Way {
    elsewhere,  // somebody else had it before
    handed,     // it was the next grant, and was waited for when it was let go of
    later,      // it was the next grant, and was asked for after that
  };
  // How a grant that was asked for at `asked` came here.
  Way came_to(const std::string& name, long long token, Nanoseconds asked) const;

 private:
  struct Release {
    long long token = 0;
    Nanoseconds asked = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Release> last_;
};

// Looks for whoever waits for a lock under a label until it is there with a ticket.
class Lookout {
 public:
  Lookout(Engine& engine, const std::string& name, const std::string& label);

  // The last thing that it is asked.
  bool has_seen_it();

 private:
  bool seen_ = false;
  std::jthread thread_;
};

}  // namespace dlock::test
