// Says where the tree lies of which this program was built.
#include "support/paths.hpp"

namespace dlock::test::path {

std::string tool(const std::string& name) { return DLOCK_BUILD_TREE "/bin/" + name; }
std::string later_migrate() { return DLOCK_BUILD_TREE "/tests/later/dlock-migrate"; }
std::string share() { return DLOCK_BUILD_TREE "/share"; }
std::string worker() { return DLOCK_BUILD_TREE "/tests/dlock_worker"; }
std::string hampered() { return DLOCK_BUILD_TREE "/tests/dlock_hampered"; }
std::string client() { return DLOCK_BUILD_TREE "/tests/dlock_bank_client"; }
std::string running_servers() { return DLOCK_BUILD_TREE "/test-servers"; }
std::string servers() { return DLOCK_SOURCE_TREE "/tests/servers"; }
std::string source() { return DLOCK_SOURCE_TREE; }

}  // namespace dlock::test::path
