// The processes that a benchmark starts for itself, and how it talks with them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace bench {

struct Word {
  char what = 0;
  std::int64_t number = 0;
};

// One end of the line between a benchmark and a helper. Threads: one.
class Line {
 public:
  explicit Line(int socket) noexcept : socket_(socket) {}
  ~Line();
  Line(Line&& other) noexcept : socket_(other.socket_) { other.socket_ = -1; }
  Line& operator=(Line&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }

  void say(char what, std::int64_t number = 0);
  // The next word. Throws what the other side failed with, or that it is gone.
  Word hear();
  // The same, which must be this one.
  Word hear(char what);
  void say_failure(const char* text) noexcept;

 private:
  int socket_;
};

// A process that runs `body` with what this one had in memory, and nothing in its arguments. Start it before the first
// engine: engines and threads do not survive a fork. It is killed with its Helper, and when this process dies.
class Helper {
 public:
  explicit Helper(const std::function<void(Line&)>& body);
  Helper(Helper&& other) noexcept : pid_(other.pid_), line_(std::move(other.line_)) { other.pid_ = -1; }
  Helper& operator=(Helper&&) = delete;
  ~Helper();

  Line& line() noexcept { return line_; }
  // The processor time it has used, in seconds.
  double processor() const;

 private:
  pid_t pid_ = -1;
  Line line_;
};

}  // namespace bench
