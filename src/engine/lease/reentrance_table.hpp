// Which grants of this engine may be entered again, and how often each is entered.
#pragma once

#include "engine/lease/lease.hpp"
#include "types/annotated_mutex.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::engine {

// A thread's number. No other thread ever gets it, as one could get the same std::thread::id. 0 is no thread's.
using ThreadId = Lease::ThreadId;
ThreadId this_thread_id() noexcept;

// Who may enter again: a job by its name, or where there is none the calling thread.
struct Entrant {
  explicit Entrant(std::string_view its_job) noexcept;
  ThreadId number;  // a job's is no thread's, and may be another job's
  std::string_view job;
};

// Threads: any. Owns: a share of each grant that its thread or job may enter again.
class ReentranceTable {
 public:
  // What is left of a grant after an entry has gone.
  enum class Rest {
    nothing,  // it was the last one
    others,
    detached,  // the grant was let go of without being released
    released,  // it was released for all who were inside
  };

  // The grant's job, or the calling thread if it has none, may enter it from now on. It takes the place of one that was
  // lost.
  void open(const std::shared_ptr<Lease>& held);
  // One more entry into what may be entered under `name`. Empty: nothing.
  std::shared_ptr<Lease> enter(const Entrant& entrant, const std::string& name);
  // How often it has been entered that can be trusted at `now`; 0: nothing.
  int count(const Entrant& entrant, const std::string& name, Instant now);
  // How many are inside.
  int inside(const Lease& held);
  // Whether it may be entered.
  bool opened(const std::shared_ptr<Lease>& held);
  Rest leave(const std::shared_ptr<Lease>& held);
  // Nobody enters it any more; who is inside stays an entry of it.
  void close(const std::shared_ptr<Lease>& held);
  // What the calling thread may enter without a job.
  std::vector<std::shared_ptr<Lease>> of_this_thread();
  // As close(), and whoever leaves is told `detached`. Answers how many were inside.
  int detach(const std::shared_ptr<Lease>& held);
  // It is going to be released for all who are inside: as close(), and whoever leaves is told `released`. False: the
  // last one has left before, or it was detached.
  bool take(const std::shared_ptr<Lease>& held);
  // What becomes of that; `unconfirmed` until it is said.
  void became(const std::shared_ptr<Lease>& held, Released released);
  Released what_became(const std::shared_ptr<Lease>& held);

 private:
  using Chain = std::shared_ptr<Lease>;  // the first of those that are linked by next_open

  // The place where what `entrant` may enter under `name` is linked, or would be.
  Chain& find(const Entrant& entrant, std::string_view name) noexcept REQUIRES(mutex_, Lease::reentrance_mutex);
  Chain& chain(ThreadId actor, std::string_view name) noexcept REQUIRES(mutex_);
  void forget(const Lease& held) noexcept REQUIRES(mutex_, Lease::reentrance_mutex);
  void unlink(Chain& link) noexcept REQUIRES(mutex_, Lease::reentrance_mutex);
  void make_room(std::size_t chains) REQUIRES(mutex_, Lease::reentrance_mutex);

  static constexpr std::size_t fewest = 16;

  AnnotatedMutex mutex_;
  // A hash table that is linked through the grants, so that to open and to close one allocates nothing. They are as
  // many as some power of two.
  std::vector<Chain> chains_ GUARDED_BY(mutex_) = std::vector<Chain>(fewest);
  std::size_t open_ GUARDED_BY(mutex_) = 0;
};

}  // namespace dlock::engine
