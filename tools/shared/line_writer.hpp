// Writes lines to a descriptor on a thread of its own, so that who says them never waits for a reader.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace dlock::tools {

// A pipe that is full takes nothing, nor does a terminal after ^S. Whether a write would wait cannot be asked first:
// another process may be quicker to the room that there is. Threads: any.
class LineWriter {
 public:
  explicit LineWriter(int descriptor);
  // Waits until all is written.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Returns at once. What nobody reads for long is not kept without end: the oldest of too many are left out.
  void add(std::string line);
  // Waits until all that was added is written.
  void wait_until_written();

 private:
  void write_all(const std::string& line) const;
  void work();

  const int descriptor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::string> lines_;  // the first of them may be under way
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace dlock::tools
