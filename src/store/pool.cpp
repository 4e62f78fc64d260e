// This file knows the pool's bookkeeping. Connections are opened and closed outside of its mutex.
#include "store/pool.hpp"

#include "types/failure.hpp"

#include <utility>

namespace dlock::store {

Pool::~Pool() {
  if (!birthplace_.forked()) return;
  for (auto& connection : idle_) static_cast<void>(connection.release());
}

Pool::Loan Pool::take(Deadline deadline) {
  {
    std::unique_lock guard(mutex_);
    const bool available =
        freed_.wait_until(guard, deadline, [&] { return !idle_.empty() || open_ < limit_; });
    if (!available)
      throw Failure(Cause::timed_out, "no connection of the pool became free in time (EngineOptions::connections)");
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return {*this, std::move(connection)};
    }
    ++open_;
  }
  try {
    auto connection = connect_(deadline);
    bool again = false;
    {
      const std::lock_guard guard(mutex_);
      again = std::exchange(failed_, false);
    }
    if (again && on_reconnect_) on_reconnect_();
    return {*this, std::move(connection)};
  } catch (...) {
    {
      const std::lock_guard guard(mutex_);
      --open_;
      failed_ = true;
    }
    freed_.notify_one();
    throw;
  }
}

void Pool::adopt(std::unique_ptr<dialects::Connection> connection) {
  const std::lock_guard guard(mutex_);
  idle_.push_back(std::move(connection));
  ++open_;
}

void Pool::give_back(std::unique_ptr<dialects::Connection> connection, bool sound) {
  if (birthplace_.forked()) {
    static_cast<void>(connection.release());
    return;
  }
  std::vector<std::unique_ptr<dialects::Connection>> dropped;
  {
    const std::lock_guard guard(mutex_);
    if (sound && connection->usable()) {
      idle_.push_back(std::move(connection));
    } else {
      // What broke this one has most likely broken those that were idle meanwhile, too.
      failed_ = true;
      dropped.swap(idle_);
      dropped.push_back(std::move(connection));
      open_ -= static_cast<unsigned>(dropped.size());
    }
  }
  if (dropped.empty()) freed_.notify_one();
  else freed_.notify_all();
}

}  // namespace dlock::store
