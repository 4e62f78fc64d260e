// A share of a job, no larger than a pointer: there may be very many of them.
#pragma once

#include <utility>

namespace dlock::engine {

struct Job;

// Threads: as a value. Owns: a share; the last one takes the job with it.
class JobRef {
 public:
  JobRef() noexcept = default;
  explicit JobRef(Job* job) noexcept : job_(job) { take(); }
  JobRef(const JobRef& other) noexcept : job_(other.job_) { take(); }
  JobRef(JobRef&& other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
  JobRef& operator=(JobRef other) noexcept {
    swap(other);
    return *this;
  }
  ~JobRef();

  void swap(JobRef& other) noexcept { std::swap(job_, other.job_); }
  Job* operator->() const noexcept { return job_; }
  explicit operator bool() const noexcept { return job_ != nullptr; }
  friend bool operator==(const JobRef&, const JobRef&) = default;

 private:
  void take() const noexcept;
  Job* job_ = nullptr;
};

}  // namespace dlock::engine
