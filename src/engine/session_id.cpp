// Keeps in mind whose rows name a job wrongly.
#include "engine/session_id.hpp"

#include "engine/lease/lease.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

namespace dlock::engine {
namespace {

// A thread that only hands out what it is granted remembers no more of it than that.
constexpr std::size_t most_detached = 1024;

// Whether a row may still be there that is wrong.
bool over(const Stray& stray) noexcept {
  if (!stray.held->wrong_row()) return true;
  return stray.detached ? BootClock::now() >= stray.held->trusted_until() : stray.held->ended();
}

struct LastJob {
  ForkGuard fork_guard{};
  JobRef job{new ThreadJob};
};

}  // namespace

// What a thread has of pthread_setspecific() is destroyed behind its thread_local objects; and that of the
// thread that calls exit() is never destroyed.
const JobRef& job_of_ending_thread() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    const auto destroy = [](void* last) {
      std::unique_ptr<LastJob> job(static_cast<LastJob*>(last));
      if (job->fork_guard.forked())
        static_cast<void>(job.release());  // the parent's, with a mutex somebody may have had
      else job->job->close();
    };
    if (const int error = ::pthread_key_create(&made, destroy); error != 0)
      throw std::system_error(error, std::generic_category(), "pthread_key_create");
    return made;
  }();
  auto* last = static_cast<LastJob*>(::pthread_getspecific(key));
  if (last != nullptr && !last->fork_guard.forked()) return last->job;
  auto made = std::make_unique<LastJob>();
  if (const int error = ::pthread_setspecific(key, made.get()); error != 0)
    throw std::system_error(error, std::generic_category(), "pthread_setspecific");
  return made.release()->job;
}

JobRef::~JobRef() {
  if (job_ != nullptr && job_->shares.fetch_sub(1, std::memory_order_acq_rel) == 1) delete job_;
}

void JobRef::take() const noexcept {
  if (job_ != nullptr) job_->shares.fetch_add(1, std::memory_order_relaxed);
}

void ThreadJob::add(Stray stray) noexcept {
  try {
    const MutexLock guard(mutex_);
    if (closed_) return;
    if (list_.size() >= limit_) {
      std::erase_if(list_, over);
      auto detached = std::ranges::count(list_, true, &Stray::detached);
      if (!planted("detached_for_ever"))
        std::erase_if(list_,
                      [&](const Stray& each) { return each.detached && detached-- > std::ptrdiff_t{most_detached}; });
      limit_ = std::max<std::size_t>(16, 2 * list_.size());
    }
    list_.push_back(std::move(stray));
    strays_.store(list_.size(), std::memory_order_release);
  } catch (const std::exception&) {  // out of memory: at worst a deadlock is imagined, or one is not found
  }
}

void ThreadJob::close() noexcept {
  std::vector<Stray> last;  // goes after the mutex is free
  const MutexLock guard(mutex_);
  closed_ = true;
  last.swap(list_);
  strays_.store(0, std::memory_order_release);
}

std::vector<Stray> ThreadJob::take_strays() {
  const MutexLock guard(mutex_);
  strays_.store(0, std::memory_order_release);
  auto taken = std::exchange(list_, {});
  std::erase_if(taken, over);
  return taken;
}

void ThreadJob::remember(const std::shared_ptr<Context>& context) noexcept {
  const MutexLock guard(mutex_);
  const auto is_known = [&](const auto& known) { return !known.owner_before(context) && !context.owner_before(known); };
  if (std::ranges::any_of(contexts_, is_known)) return;
  try {
    std::erase_if(contexts_, [](const auto& known) { return known.expired(); });
    contexts_.push_back(context);
  } catch (const std::exception&) {  // as above
  }
}

std::vector<std::weak_ptr<Context>> ThreadJob::contexts() {
  const MutexLock guard(mutex_);
  return contexts_;
}

}  // namespace dlock::engine
