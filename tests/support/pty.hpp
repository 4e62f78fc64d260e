// How a test sits at a terminal.
#pragma once

#include "support/exit_status.hpp"

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

// A command on a terminal of its own, as leader of a session, without echo. Killed by the destructor.
// Threads: one.
class Pty {
 public:
  Pty(const std::vector<std::string>& command, const std::vector<std::string>& environment);
  ~Pty();
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;

  void type(std::string_view keys);  // "\x03" is ^C, "\x1a" is ^Z, "\x04" is ^D, "\x13" is ^S, "\x11" is ^Q
  // Reads until this text has come, after what was asked for before. False: the end, or far longer than it should take.
  bool shows(std::string_view text);
  // Reads until `happened`, asked after each read, says so of all that was read. False: as above.
  bool until(const std::function<bool(const std::string&)>& happened);
  // The terminal has this size now, and whoever is in its foreground is told.
  void resize(unsigned short rows, unsigned short columns);
  // All that was read.
  const std::string& screen() const noexcept { return screen_; }
  // Reads to the end. What says nothing for far too long is killed.
  ExitStatus wait();

 private:
  bool read_more();
  pid_t pid_ = -1;
  int master_ = -1;
  bool silent_ = false;
  std::size_t seen_ = 0;
  std::string screen_;
};

}  // namespace dlock::test
