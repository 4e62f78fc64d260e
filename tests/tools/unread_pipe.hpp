// A pipe that nobody reads, for what a command prints.
#pragma once

#include "support/eventually.hpp"
#include "support/slowness.hpp"
#include "support/temporary_folder.hpp"
#include "tools/command.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace dlock::test {

// So small that a command soon waits for a reader: it takes 4 KiB.
class UnreadPipe {
 public:
  UnreadPipe() {
    if (::mkfifo(path_.c_str(), 0600) != 0) fail("mkfifo");
    end_ = ::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (end_ < 0 || ::fcntl(end_, F_SETPIPE_SZ, 4096) < 0) fail("open a pipe");
  }
  ~UnreadPipe() { ::close(end_); }
  UnreadPipe(const UnreadPipe&) = delete;
  UnreadPipe& operator=(const UnreadPipe&) = delete;

  // For a command that prints little.
  void fill() {
    const std::string page(4096, '.');
    while (::write(end_, page.data(), page.size()) > 0) {}
  }
  const std::string& path() const noexcept { return path_; }
  bool has_something() const {
    int bytes = 0;
    return ::ioctl(end_, FIONREAD, &bytes) == 0 && bytes > 0;
  }
  // Starts dlock with its results in the pipe.
  Child dlock_into(const std::string& url, std::vector<std::string> arguments) const {
    return dlock_at(url, std::move(arguments), "2>/dev/null >'" + path_ + "'");
  }

 private:
  [[noreturn]] static void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/pipe";
  int end_ = -1;
};

// How it ends without another word from here, for which it has a second and more; killed if it does not.
inline ExitStatus end_of(Child& child) {
  if (!eventually([&] { return !child.running(); }, std::chrono::seconds{10} * slowness())) child.signal(SIGKILL);
  return child.wait();
}

}  // namespace dlock::test
