// Where this build keeps what tests start and read.
//
// The paths themselves are compile definitions of paths.cpp alone: no other object depends on where a tree lies, so
// that the compiler's cache knows it everywhere.
#pragma once

#include <string>

namespace dlock::test::path {

std::string tool(const std::string& name);  // the command `dlock`, `dlock-migrate` or `dlock-bench`
std::string later_migrate();                // dlock-migrate with the versions of later_versions.hpp
std::string share();                        // manual pages and completions, as they are installed
std::string source();                       // the root of the source tree
std::string worker();                       // the program of worker.cpp
std::string hampered();                     // the program of hampered.cpp
std::string client();                       // the program of fault/suite/client.cpp
std::string servers();                      // the scripts that start private servers
std::string running_servers();              // where those that ctest started say how they are reached

}  // namespace dlock::test::path
