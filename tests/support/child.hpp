// How a test starts another process, talks to it and ends it.
#pragma once

#include "support/exit_status.hpp"
#include "support/temporary_folder.hpp"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

// A child process whose standard input and output are pipes. Killed by the destructor if it still runs.
// Threads: one at a time.
class Child {
 public:
  // `environment`: settings NAME=VALUE beside this process's own.
  explicit Child(const std::vector<std::string>& command, const std::vector<std::string>& environment = {});
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  // The next line it prints, without its end; empty when its output has ended.
  std::optional<std::string> line();
  void tell(std::string_view line);
  void signal(int number);
  pid_t pid() const noexcept { return pid_; }
  bool running() const noexcept;
  ExitStatus wait();

 private:
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  std::string unread_;
};

// The command that starts tests/support/worker.cpp.
std::vector<std::string> worker(std::initializer_list<std::string> arguments);

// The one that starts tests/support/hampered.cpp.
std::vector<std::string> hampered(const std::string& url, std::chrono::milliseconds request_timeout);

}  // namespace dlock::test
