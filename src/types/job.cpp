// How a job is named, which one is current for a thread, and how it reaches another process.
#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/owner.hpp"

#include <dlock/export.hpp>
#include <dlock/job.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

constexpr std::size_t longest_job = 255;
constexpr const char* variable = "DLOCK_JOB";

}  // namespace

// A scope of one thread. It may be marked as ended by any, and is taken away by its own.
struct Job::Scope::Frame {
  // Of a thread. At its end other objects of the thread, and those with static storage, may still ask.
  struct Stack {
    ~Stack() { gone = true; }
    std::shared_ptr<Frame> innermost;
  };
  DLOCK_HIDDEN static thread_local Stack stack;
  DLOCK_HIDDEN static thread_local bool gone;

  DLOCK_HIDDEN static std::shared_ptr<Frame> current() noexcept {
    if (gone) return nullptr;
    auto& innermost = stack.innermost;
    while (innermost && innermost->ended.load(std::memory_order_acquire)) innermost = innermost->outer;
    return innermost;
  }

  const Job job;
  const std::shared_ptr<Frame> outer;
  std::atomic<bool> ended{false};
};

thread_local Job::Scope::Frame::Stack Job::Scope::Frame::stack;
thread_local bool Job::Scope::Frame::gone = false;

Job::Job(std::string_view name) {
  check_text("the job", name, longest_job);
  if (!name.empty()) name_ = std::make_shared<const std::string>(name);
}

Job Job::unique(std::string_view kind) {
  const auto digits = random_identity();
  return kind.empty() ? Job(digits) : Job(fmt::format("{}/{}", kind, digits));
}

Job Job::current() noexcept {
  const auto innermost = Scope::Frame::current();
  return innermost ? innermost->job : Job();
}

Job Job::from_environment() {
  const char* value = std::getenv(variable);
  if (value == nullptr) return {};
  check_text(variable, value, longest_job);
  return Job(value);
}

std::string Job::environment() const { return fmt::format("{}={}", variable, name()); }

Job::Scope::Scope(Job job) : frame_(new Frame{std::move(job), Frame::current()}) {
  if (!Frame::gone) Frame::stack.innermost = frame_;
}

Job::Scope::~Scope() {
  if (planted("job_scope_stays")) return;
  frame_->ended.store(true, std::memory_order_release);
  Frame::current();
}

}  // namespace v0
}  // namespace dlock
