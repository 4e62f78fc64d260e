// A share of a thread's job, no larger than a pointer: there may be very many of them.
#pragma once

#include <utility>

namespace dlock::engine {

struct ThreadJob;

// Threads: as a value. Owns: a share; the last one takes the job with it. Empty: nobody's, or
// that of a job with a name, which has nothing to be kept in mind of.
class JobRef {
 public:
  JobRef() noexcept = default;
  explicit JobRef(ThreadJob* job) noexcept : job_(job) { take(); }
  JobRef(const JobRef& other) noexcept : job_(other.job_) { take(); }
  JobRef(JobRef&& other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
  JobRef& operator=(JobRef other) noexcept {
    swap(other);
    return *this;
  }
  ~JobRef();

  void swap(JobRef& other) noexcept { std::swap(job_, other.job_); }
  ThreadJob* operator->() const noexcept { return job_; }
  explicit operator bool() const noexcept { return job_ != nullptr; }
  friend bool operator==(const JobRef&, const JobRef&) = default;

 private:
  void take() const noexcept;
  ThreadJob* job_ = nullptr;
};

}  // namespace dlock::engine
