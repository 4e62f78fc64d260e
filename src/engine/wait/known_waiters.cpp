// How those who wait in this process are found again by their owners.
#include "engine/wait/known_waiters.hpp"

#include "engine/session_id.hpp"
#include "types/annotated_mutex.hpp"
#include "types/name.hpp"
#include "types/process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <map>

namespace dlock::engine {
namespace {

struct Waiters {
  Waiters() { keep_free_at_fork({&mutex, 1}); }

  AnnotatedMutex mutex;
  std::map<std::string, std::string, std::less<>> words GUARDED_BY(mutex);  // by owner
};

// Never destroyed: a thread may wait while the program ends.
Waiters& waiters() {
  static Waiters& all = *new Waiters;
  return all;
}

// Not at the first wait, which a fork on another thread may meet.
[[maybe_unused]] const Waiters& made_when_loaded = waiters();

}  // namespace

void KnownWaiter::waits_as(const std::string& owner, std::string_view job) {
  if (owner == owner_) return;
  const auto of = job.empty() ? std::string{} : "job " + in_quotes(job) + ", ";
  is_known(owner, fmt::format("{}thread {} of process {}", of, ::gettid(), ::getpid()));
}

void KnownWaiter::waits_without_thread(const std::string& owner, std::string_view job) {
  if (owner == owner_) return;
  const auto of = job.empty() ? std::string{} : "job " + in_quotes(job) + " ";
  is_known(owner, fmt::format("{}of process {}", of, ::getpid()));
}

void KnownWaiter::is_known(const std::string& owner, std::string words) {
  auto& all = waiters();
  const MutexLock guard(all.mutex);
  all.words.erase(owner_);
  owner_.clear();
  all.words.emplace(owner, std::move(words));
  owner_ = owner;
}

KnownWaiter::~KnownWaiter() {
  if (owner_.empty()) return;
  auto& all = waiters();
  const MutexLock guard(all.mutex);
  all.words.erase(owner_);
}

std::string known_of(std::string_view owner, std::string_view actor) {
  auto& all = waiters();
  const MutexLock guard(all.mutex);
  const auto found = all.words.find(owner);
  if (found != all.words.end()) return found->second;
  return fmt::format("job {} of another process", job_of(actor));
}

}  // namespace dlock::engine
