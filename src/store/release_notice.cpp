// The thread that notifies: how long one notification may take, and that all which are asked for meanwhile are one. How
// long its connection is kept: the dialect's ReleaseSignal.
#include "store/release_notice.hpp"

#include "types/worker.hpp"

#include <chrono>
#include <exception>
#include <utility>

namespace dlock::store {
namespace {

constexpr std::chrono::seconds send_time{2};

}  // namespace

struct ReleaseNotice::Bench : Worker {
  explicit Bench(std::unique_ptr<dialects::ReleaseSignal> its_signal) : release_signal(std::move(its_signal)) {}

  void run() override {
    UniqueMutexLock guard(mutex);
    for (;;) {
      while (!asked && !closing) wait(guard);
      if (!std::exchange(asked, false)) return;
      guard.unlock();
      try {
        release_signal->send(later(BootClock::now(), send_time));
      } catch (const std::exception&) {
        // Whoever waits looks by itself before long.
      }
      guard.lock();
    }
  }

  const std::unique_ptr<dialects::ReleaseSignal> release_signal;
  bool asked GUARDED_BY(mutex) = false;
};

ReleaseNotice::ReleaseNotice(std::unique_ptr<dialects::ReleaseSignal> release_signal)
    : bench_(release_signal ? std::make_shared<Bench>(std::move(release_signal)) : nullptr) {}

ReleaseNotice::~ReleaseNotice() {
  if (bench_) bench_->finish();
}

void ReleaseNotice::ask() noexcept {
  if (!bench_ || bench_->forked()) return;  // after fork() the mutex may be somebody's who is not there
  {
    const MutexLock guard(bench_->mutex);
    bench_->asked = true;
    if (!bench_->try_start()) return;  // the same as a signal that nobody hears
  }
  bench_->wake();
}

void ReleaseNotice::heed(const Answer& answer) noexcept {
  if (bench_ && answer.rows() > 0 && answer.integer(0, 0) != 0) ask();
}

}  // namespace dlock::store
