// How lines wait for a descriptor that does not take them.
#include "tools/shared/line_writer.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iterator>
#include <string_view>
#include <utility>

namespace dlock::tools {
namespace {

constexpr std::size_t most_lines = 1000;

}  // namespace

LineWriter::LineWriter(int descriptor) : descriptor_(descriptor) {
  // Signals are for the thread that has something to end.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LineWriter::~LineWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LineWriter::add(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= most_lines) lines_.erase(std::next(lines_.begin()));  // the first one may be under way
    lines_.push_back(std::move(line));
  }
  changed_.notify_all();
}

void LineWriter::wait_until_written() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return lines_.empty(); });
}

void LineWriter::write_all(const std::string& line) const {
  for (std::string_view rest = line; !rest.empty();) {
    const auto count = ::write(descriptor_, rest.data(), rest.size());
    if (count > 0) {
      rest.remove_prefix(static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {  // whoever shares it has set O_NONBLOCK
      pollfd room{descriptor_, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (count == 0 || errno != EINTR) {
      return;  // there is nobody to tell
    }
  }
}

void LineWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const auto& line = lines_.front();  // stays where it is while others are added behind it
    lock.unlock();
    write_all(line);
    lock.lock();
    lines_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace dlock::tools
