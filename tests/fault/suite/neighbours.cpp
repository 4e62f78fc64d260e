// Remembers and looks for what the other threads of a client do.
#include "fault/suite/neighbours.hpp"

#include "fault/suite/watch.hpp"

#include <dlock/dlock.hpp>

#include <algorithm>

namespace dlock::test {

using namespace std::chrono_literals;

void LetGo::add(const std::string& name, long long token, Nanoseconds asked) {
  const std::lock_guard guard(mutex_);
  auto& newest = last_[name];
  if (token > newest.token) newest = {token, asked};
}

LetGo::Way LetGo::came_to(const std::string& name, long long token, Nanoseconds asked) const {
  const std::lock_guard guard(mutex_);
  const auto found = last_.find(name);
  if (found == last_.end() || found->second.token + 1 != token) return Way::elsewhere;
  return asked < found->second.asked ? Way::handed : Way::later;
}

Lookout::Lookout(Engine& engine, const std::string& name, const std::string& label)
    : thread_([this, &engine, name, label](const std::stop_token& stop) {
        try {
          for (; !stop.stop_requested() && !seen_; pause(5ms)) {
            const auto all = engine.waiters(name);
            seen_ = std::any_of(all.begin(), all.end(),
                                [&](const Waiter& waiter) { return waiter.label == label && waiter.ticket != 0; });
          }
        } catch (const Error&) {  // then it was not seen
        }
      }) {}

bool Lookout::has_seen_it() {
  thread_.request_stop();
  thread_.join();
  return seen_;
}

}  // namespace dlock::test
