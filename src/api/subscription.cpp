// Ends an observer with the subscription to it.
#include "api/subscription.hpp"

#include <utility>

namespace dlock {
inline namespace v0 {

Subscription::Subscription() noexcept = default;
Subscription::Subscription(std::unique_ptr<Handle> handle) noexcept : handle_(std::move(handle)) {}
Subscription::Subscription(Subscription&&) noexcept = default;

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  unsubscribe();
  handle_ = std::move(other.handle_);
  return *this;
}

Subscription::~Subscription() { unsubscribe(); }

void Subscription::unsubscribe() noexcept {
  if (!handle_) return;
  // After fork() the thread is the parent's, and whatever it had locked stays so.
  if (handle_->fork_guard.forked()) static_cast<void>(handle_.release());
  // From within its own call it is kept, so that whoever comes later can wait for the end of that.
  else if (handle_->registration->end()) handle_.reset();
}

}  // namespace v0
}  // namespace dlock
