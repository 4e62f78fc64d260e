// The job behind a grant: the one that was given (dlock::Job), or else, as far as this process can see it, the thread
// that asked, or the one that its Lock was given to. What is here: how a thread or a job is named, and which rows name
// it wrongly; whose a grant is stands in lease.hpp.
//
// An actor is 32 hexadecimal digits: 16 of the engine, 16 of the job. Who holds and waits as the same job is told by
// the second half, so that two engines of a process see the same thread; who can be notified by the first.
#pragma once

#include "engine/job_ref.hpp"
#include "types/annotated_mutex.hpp"
#include "types/digest.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"
#include "types/process.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::engine {

constexpr std::size_t id_length = 16;

// The id of an engine or a thread.
inline std::string random_id() { return random_identity().substr(0, id_length); }

// The id of a job that has a name. It is the same in all processes.
inline std::string id_of(std::string_view job) { return sha256(job).substr(0, id_length); }

// The job's id in an actor. Empty: it is none.
inline std::string_view job_of(std::string_view actor) {
  return actor.size() > id_length ? actor.substr(id_length) : std::string_view{};
}

class Context;
class Lease;

// A grant whose row names a job that has detached it, or does not name the one that was given it.
struct Stray {
  std::weak_ptr<Context> context;
  std::shared_ptr<Lease> held;
  bool detached = false;
};

// A thread that asks for itself, and how many grants it holds through any engine of this process. Threads: any.
struct ThreadJob {
  const std::string id = random_id();  // not std::thread::id, which is used again for another thread
  std::atomic<int> holds{0};
  // How many it does not hold any more, or does not know whether it does, whose rows name it: its Locks were moved.
  std::atomic<int> away{0};

  std::atomic<int> shares{0};  // JobRef's own

  // Whether some rows may be wrong about it.
  bool any_astray() const noexcept { return away.load() > 0 || strays_.load(std::memory_order_acquire) > 0; }

  void add(Stray stray) noexcept;
  // Its thread has ended: it never waits again, and what rows say of it does not matter to it.
  void close() noexcept;
  // Those that are still to be put right.
  std::vector<Stray> take_strays();
  // Through which engines it was granted what was moved.
  void remember(const std::shared_ptr<Context>& context) noexcept;
  std::vector<std::weak_ptr<Context>> contexts();

 private:
  AnnotatedMutex mutex_;
  std::vector<std::weak_ptr<Context>> contexts_ GUARDED_BY(mutex_);
  std::vector<Stray> list_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  std::size_t limit_ GUARDED_BY(mutex_) = 16;  // when it is that long, those that are over are taken out of it
  std::atomic<std::size_t> strays_{0};
};

// The job of a thread whose objects are being destroyed, or of exit(): these may still ask.
const JobRef& job_of_ending_thread();

// The job of the calling thread. A child made by fork() is another one.
inline const JobRef& job_of_this_thread() {
  static thread_local bool gone = false;
  struct Own {
    ~Own() {
      gone = true;
      if (fork_guard.forked()) leave();
      else job->close();  // what it remembers knows it, too
    }
    // The parent's, whose mutex some thread may have had when it was copied.
    void leave() noexcept { static_cast<void>(new (std::nothrow) JobRef(job)); }
    ForkGuard fork_guard{};
    JobRef job{new ThreadJob};
  };
  if (gone && !planted("thread_job_dangles")) [[unlikely]]
    return job_of_ending_thread();
  thread_local Own own;
  if (own.fork_guard.forked()) [[unlikely]] {
    JobRef fresh(new ThreadJob);
    own.leave();
    own.job = std::move(fresh);
    own.fork_guard = {};
  }
  return own.job;
}

class SessionId {
 public:
  SessionId(std::string_view engine, std::string_view job) {
    engine.copy(text_.data(), id_length);
    job.copy(text_.data() + id_length, id_length);
  }
  std::string_view view() const noexcept { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 2 * id_length> text_{};
};

}  // namespace dlock::engine
