// The system calls for the foreground of a terminal.
#include "terminal.hpp"

#include "processes.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

namespace dlock::tools::run {

Terminal::Terminal() : descriptor_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {
  known_ = is_ours() && ::tcgetattr(descriptor_, &modes_) == 0;
}

Terminal::~Terminal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Terminal::to_be_given() const noexcept {
  const auto own = ::getpgrp();  // 0: one of another pid namespace, and nothing could be given back to it
  return descriptor_ >= 0 && own > 0 && ::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) == own;
}

bool Terminal::is_ours() const noexcept { return is_of(::getpgrp()); }

bool Terminal::is_of(pid_t group) const noexcept {
  return descriptor_ >= 0 && group > 0 && ::tcgetpgrp(descriptor_) == group;
}

void Terminal::give(pid_t group) const noexcept {
  if (descriptor_ >= 0) ::tcsetpgrp(descriptor_, group);
}

void Terminal::take_back(pid_t group) const noexcept {
  if (is_of(group)) ::tcsetpgrp(descriptor_, ::getpgrp());
}

bool Terminal::take_back_from_the_dead() const {
  if (descriptor_ < 0) return false;
  const auto group = ::tcgetpgrp(descriptor_);
  if (group <= 0 || group_lives(group)) return false;
  take_back(group);
  return true;
}

void Terminal::restore_modes() const noexcept {
  if (known_ && is_ours()) ::tcsetattr(descriptor_, TCSANOW, &modes_);  // TCSADRAIN would wait for a reader
}

void stop_this_process(Stop stop) noexcept {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::kill(stop == Stop::alone ? ::getpid() : 0, SIGTSTP);  // comes back when continued
  ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
}

void end_as_typed(int signal, Heard heard) noexcept {
  constexpr rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::kill(heard == Heard::by_the_command ? 0 : ::getpid(), signal);
}

}  // namespace dlock::tools::run
