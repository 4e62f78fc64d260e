// A run as it is kept for people, and judged again: its whole history and the books it left, in a folder.
#pragma once

#include "fault/suite/checker.hpp"

#include <string>

namespace dlock::test {

struct KeptRun {
  History history;
  Books books;
};

// Makes the folder. Throws std::exception if it cannot be written.
void keep_run(const std::string& folder, const KeptRun& run);
// Throws std::exception if the folder holds no run.
KeptRun read_run(const std::string& folder);

}  // namespace dlock::test
