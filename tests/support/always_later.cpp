// Has a program know the later versions from its beginning to its end.
#include "support/later_versions.hpp"

namespace {
const dlock::test::LaterVersions always;
}
