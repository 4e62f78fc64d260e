// Whose turn it is to write to a file, among the connections of this process.
#pragma once

#include "patience.hpp"
#include "types/annotated_mutex.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace dlock::dialects::sqlite {

// SQLite has one writer at a time, and of those who wait it takes whoever looks in the right moment: who writes again
// and again keeps the others out for seconds. Here they write in the order in which they came. Other processes are
// waited for as ever, by who is in front.
//
// Threads: any. A child made by fork() must not use that of its parent: its connections have one of their own.
class WriteQueue {
 public:
  // That of the file which is at `path` now, the same for all who ask while one of them has it.
  static std::shared_ptr<WriteQueue> of(const std::string& path);

  // Having one is the turn. Who has no time to wait for it goes on without: SQLite will tell whether the file is free.
  class Turn {
   public:
    Turn() noexcept = default;
    Turn(WriteQueue& queue, const BusyPatience& patience) : queue_(queue.wait(patience) ? &queue : nullptr) {}
    Turn(Turn&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Turn& operator=(Turn&& other) noexcept {
      std::swap(queue_, other.queue_);
      return *this;
    }
    ~Turn() {
      if (queue_ != nullptr) queue_->next();
    }

   private:
    WriteQueue* queue_ = nullptr;
  };

 private:
  struct Writer {
    std::condition_variable changed;
    bool is_next = false;
  };

  bool wait(const BusyPatience& patience);
  void next() noexcept;

  AnnotatedMutex mutex_;
  bool taken_ GUARDED_BY(mutex_) = false;
  std::deque<Writer*> waiters_ GUARDED_BY(mutex_);  // of the stacks of those who wait
};

}  // namespace dlock::dialects::sqlite
