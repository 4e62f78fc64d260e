// How those who write to a file of SQLite take turns.
#include "write_queue.hpp"

#include "types/process.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

namespace dlock::dialects::sqlite {
namespace {

// A call that is interrupted is not told so: it looks now and then.
constexpr std::chrono::milliseconds between_checks{5};

// Which file it is, and in which process.
using Key = std::tuple<unsigned, dev_t, ino_t>;

struct Queues {
  std::array<AnnotatedMutex, 1> mutex;
  std::map<Key, std::weak_ptr<WriteQueue>> known;  // guarded by it
};

// Never destroyed, since a program may end while engines are open; and made when the program is loaded, so that no
// fork() comes in between.
Queues& queues() {
  static Queues& all = []() -> Queues& {
    auto& made = *new Queues;
    keep_free_at_fork(made.mutex);
    return made;
  }();
  return all;
}
[[maybe_unused]] const Queues& made_when_loaded = queues();

}  // namespace

std::shared_ptr<WriteQueue> WriteQueue::of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::make_shared<WriteQueue>();
  auto& all = queues();
  const MutexLock guard(all.mutex[0]);
  std::erase_if(all.known, [](const auto& each) { return each.second.expired(); });
  auto& known = all.known[{fork_generation(), found.st_dev, found.st_ino}];
  auto queue = known.lock();
  if (!queue) known = queue = std::make_shared<WriteQueue>();
  return queue;
}

bool WriteQueue::wait(const BusyPatience& patience) {
  UniqueMutexLock lock(mutex_);
  if (!taken_) return taken_ = true;
  Writer me;
  waiters_.push_back(&me);
  while (!me.is_next && !patience.over())
    me.changed.wait_for(lock, std::min<BootClock::duration>(patience.deadline() - BootClock::now(), between_checks));
  if (!me.is_next) std::erase(waiters_, &me);
  return me.is_next;
}

void WriteQueue::next() noexcept {
  const MutexLock guard(mutex_);
  if (waiters_.empty()) {
    taken_ = false;
    return;
  }
  waiters_.front()->is_next = true;
  waiters_.front()->changed.notify_one();
  waiters_.pop_front();
}

}  // namespace dlock::dialects::sqlite
