// On whose behalf locks are held and waited for, whatever threads that takes.
#pragma once

#include <dlock/export.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// One piece of work: a task, a request, an order. Given by LockOptions::job, or made current for a scope, it stands in
// the place of the thread: Reentrance::thread lets the job enter again what it holds, on any of its threads, and nobody
// else on those threads; grants and waits of one job count as one when deadlocks are looked for, also in several
// processes. A Lock belongs to the job it was taken for wherever it is moved, and to none after Lock::detach. Where no
// job is given the calling thread is the job.
// Two Jobs of the same name are the same job, in all processes. A job waits when one of its threads does: what goes on
// meanwhile, and may let go of something, is better a job of its own.
// Threads: as a value; all members of one from any, but for assignment. Owns: its name, which copies share.
class DLOCK_EXPORT Job {
 public:
  class Scope;

  Job() noexcept = default;  // none
  // By its name: at most 255 bytes of UTF-8 without NUL. Empty: none.
  // Fails: misuse.
  Job(std::string_view name);
  Job(const std::string& name) : Job(std::string_view(name)) {}
  Job(const char* name) : Job(std::string_view(name)) {}

  // A new one, which is no other's: its name is `kind`, for people, a slash, and 32 random hexadecimal digits.
  // Fails: misuse (`kind` is longer than 222 bytes, or not UTF-8 without NUL).
  static Job unique(std::string_view kind = {});

  // That of the innermost Scope of the calling thread. Empty: none.
  static Job current() noexcept;

  // What the parent of this process, or `dlock run` around it, has put into DLOCK_JOB; none if that is unset or empty.
  // Nothing reads it unasked: whoever starts a program must not decide who of its threads may enter what. Reads the
  // environment, which no other thread may change meanwhile.
  // Fails: misuse.
  static Job from_environment();
  // For the environment of a child: "DLOCK_JOB=" and the name. The child has engines of its own, and so does not enter
  // what this process holds; to wait for that, while this process waits for the child, is a deadlock that nobody sees.
  std::string environment() const;

  std::string_view name() const noexcept { return name_ ? std::string_view(*name_) : std::string_view(); }
  bool empty() const noexcept { return !name_; }
  explicit operator bool() const noexcept { return !empty(); }
  friend bool operator==(const Job& one, const Job& other) noexcept { return one.name() == other.name(); }

 private:
  std::shared_ptr<const std::string> name_;
};

// Makes a job current for the calling thread: what it asks for without LockOptions::job is the job's. Of an empty Job:
// no job is current, whatever scopes are around it. Scopes nest; where one ends, the one around it is current again.
// Threads: begins and ends on one thread. A coroutine that may go on on another one must have none across a suspension:
// it carries its Job by hand. One that ends elsewhere, or not in turn, does no further harm.
class [[nodiscard]] DLOCK_EXPORT Job::Scope {
 public:
  explicit Scope(Job job);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  friend class Job;
  struct Frame;
  std::shared_ptr<Frame> frame_;
};

}  // namespace v0
}  // namespace dlock
