// What a Subscription holds.
#pragma once

#include "engine/event_queue.hpp"
#include "types/process.hpp"

#include <dlock/subscription.hpp>

#include <memory>

namespace dlock {
inline namespace v0 {

struct Subscription::Handle {
  std::unique_ptr<engine::EventQueue::Registration> registration;
  ForkGuard fork_guard{};
};

}  // namespace v0
}  // namespace dlock
