// How commits of others to a file are heard: the kernel tells of writes, and the file of commits.
#pragma once

#include "dialects/listener.hpp"
#include "file.hpp"

#include <memory>

namespace dlock::dialects::sqlite {

// Null where the kernel does not tell: another host may write to the file, or there are no watches left.
// Throws Failure.
std::unique_ptr<Listener> open_listener(const File& file, Deadline deadline);

}  // namespace dlock::dialects::sqlite
