// Whose work a call is that does not say so.
#pragma once

#include <dlock/job.hpp>
#include <dlock/options.hpp>

#include <optional>
#include <utility>

namespace dlock::engine {

// The options of a call, with the calling thread's current job where they name none. Threads: one. They are copied only
// for that, and otherwise have to live as long.
class OnBehalf {
 public:
  explicit OnBehalf(const LockOptions& options) : given_(options) {
    if (options.job) return;
    if (auto job = Job::current()) own_.emplace(options).job = std::move(job);
  }
  OnBehalf(const OnBehalf&) = delete;
  OnBehalf& operator=(const OnBehalf&) = delete;

  const LockOptions& options() const noexcept { return own_ ? *own_ : given_; }

 private:
  const LockOptions& given_;
  std::optional<LockOptions> own_{};
};

}  // namespace dlock::engine
