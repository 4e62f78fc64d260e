// A folder for one test.
#pragma once

#include <string>

namespace dlock::test {

// A folder of its own, removed with what is in it.
class TemporaryFolder {
 public:
  // `in_memory`: where the disk is not waited for, if the system has such a place.
  explicit TemporaryFolder(bool in_memory = false);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace dlock::test
