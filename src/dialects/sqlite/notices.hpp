// Tells, by inotify(7), that somebody writes to a database's files.
#pragma once

#include <string>

namespace dlock::dialects::sqlite {

// The file, its log and its journal, also when they are made, or replaced, later.
// Threads: one at a time. Owns: a descriptor, which no other program inherits.
class Notices {
 public:
  // Throws Failure{refused} where the kernel has no room for more descriptors or watches.
  explicit Notices(const std::string& path);
  ~Notices();
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  // Takes all there are. False: none is of these files.
  bool take();

 private:
  [[noreturn]] void refused() const;
  void watch_files();

  const std::string folder_, name_;  // with every link resolved
  int descriptor_ = -1, folder_watch_ = -1;
};

}  // namespace dlock::dialects::sqlite
