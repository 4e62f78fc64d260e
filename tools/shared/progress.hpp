// How a command that takes longer than a second shows that it is still at it.
#pragma once

#include "tools/shared/console.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace dlock::tools {

// One line on the terminal at standard error that is written over again and again, from the second second on, and wiped
// at the end. None with -q, with -v (which says more), with --format json, or without a terminal.
// To be made after what blocks signals: it has a thread. Threads: any.
class ProgressLine {
 public:
  explicit ProgressLine(const Console& console);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // What is being done now.
  void say(std::string_view text);

 private:
  void run(const std::stop_token& stop);

  const std::string program_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string text_;
  std::jthread thread_{};
};

}  // namespace dlock::tools
