// How a benchmark shows people that it is still at it.
#pragma once

#include <string>

namespace bench {

// One line on standard error that is written over again and again, and wiped at the end; nothing unless that is a
// terminal. Threads: one.
class Progress {
 public:
  Progress(std::string scenario, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(const std::string& text);
  void part(double done);  // from 0 to 1

 private:
  const std::string scenario_;
  const bool shown_;
};

}  // namespace bench
