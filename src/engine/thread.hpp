// This file knows that the engine's threads are like all of the library's.
#pragma once

#include "types/thread.hpp"

namespace dlock::engine {

using dlock::Thread;

}  // namespace dlock::engine
