// What threads have locked of one name in one mode, and how often: the inside of what the standard's guards take.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/process.hpp"

#include <dlock/engine.hpp>
#include <dlock/lock.hpp>
#include <dlock/options.hpp>

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// Threads: all members from any; unlock() and held() are about the calling one. Owns: what is locked through it, and a
// share of the engine. Fails: locking throws what Engine::try_lock throws; after fork() all but unlock() throw misuse.
class ThreadLocks {
 public:
  // `kind`: a literal that says to people what it is of. Fails: misuse (a bad name or option, a mode, or another
  // reentrance than `thread`).
  ThreadLocks(std::string_view kind, const Engine& engine, std::string_view name, LockOptions options,
              Mode mode = Mode::exclusive);

  // Whether it is the parent's: then not even its memory may be touched, since a thread may have been inside.
  bool forked() const noexcept { return fork_guard_.forked(); }

  void lock();
  bool try_lock();
  bool try_lock_for(SaturatingDuration wait);
  void unlock() noexcept;
  Lock& held();

 private:
  void check_here() const;
  bool keep(std::optional<Lock> lock);

  const std::string_view kind_;
  const std::string name_;
  const LockOptions options_;
  const ForkGuard fork_guard_{};
  AnnotatedMutex mutex_{};
  // Each list is touched by its own thread alone. In an exclusive mode more than one thread has one only if a lease was
  // lost. By engine::ThreadId.
  std::map<std::uint64_t, std::list<Lock>> holders_ GUARDED_BY(mutex_){};
  Engine engine_;  // ends before what its calls use
};

}  // namespace v0
}  // namespace dlock
