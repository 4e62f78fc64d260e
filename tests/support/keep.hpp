// Where a test leaves what explains its failure: in the folder of the run (DLOCK_TEST_KEEP, set by tools/test), under
// the test's name (DLOCK_TEST_NAME, set by ctest); without them where temporary files go.
#pragma once

#include <string>

namespace dlock::test {

// Whether the run has such a folder: what is only of use beside a failure is left there or nowhere.
bool keeps();

// "…/conformance.sqlite.fence.WHAT".
std::string place_to_keep(const std::string& what);

}  // namespace dlock::test
