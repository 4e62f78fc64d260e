// Cancelling is asked for on a thread that must not wait, and done on one of its own.
#include "migrate/cancel_guard.hpp"

#include "types/failure.hpp"

#include <chrono>
#include <system_error>

namespace dlock::migrate {
namespace {

constexpr std::chrono::milliseconds between_tries{200};  // a statement that was not yet sent is not there to be cut off
constexpr std::chrono::seconds longest_try{5};

}  // namespace

CancelGuard::CancelGuard(dialects::Canceller* canceller, const std::stop_token& asked) : canceller_(canceller) {
  if (canceller_ == nullptr) return;
  callback_.emplace(asked, [this] {
    try {
      thread_.start([this] { cut(); });
    } catch (const std::system_error&) {  // no thread is to be had: the statement ends as it would have
    }
  });
}

CancelGuard::~CancelGuard() {
  callback_.reset();
  {
    const MutexLock guard(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.finish();
}

void CancelGuard::cut() {
  UniqueMutexLock guard(mutex_);
  while (!over_) {
    guard.unlock();
    try {
      canceller_->cancel(later(BootClock::now(), longest_try));
    } catch (const Failure&) {  // then the next try may reach the database
    }
    guard.lock();
    changed_.wait_for(guard, between_tries, [this]() REQUIRES(mutex_) { return over_; });
  }
}

}  // namespace dlock::migrate
