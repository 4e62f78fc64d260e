// This file knows the job behind a grant, as far as this process can see it: the thread that asked.
#pragma once

#include "types/owner.hpp"

#include <string>

namespace dlock::engine {

// Not std::thread::id, which is used again for another thread.
inline const std::string& actor_of_this_thread() {
  thread_local const std::string actor = random_identity();
  return actor;
}

}  // namespace dlock::engine
