// Makes and removes the folder.
#include "support/temporary_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace dlock::test {

TemporaryFolder::TemporaryFolder(bool in_memory) {
  const bool memory = in_memory && ::access("/dev/shm", W_OK) == 0;
  path_ = (memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) / "dlock-test-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace dlock::test
