// This file knows the pool's bookkeeping. Connections are opened and closed outside of its mutex.
#include "store/pool.hpp"

#include "types/failure.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace dlock::store {

bool harmless(Cause cause) noexcept {
  switch (cause) {
    case Cause::locked:
    case Cause::deadlock:
    case Cause::serialization:
    case Cause::schema:
    case Cause::permission:
    case Cause::rejected: return true;
    case Cause::refused:
    case Cause::disconnected:
    case Cause::timed_out:
    case Cause::read_only:
    case Cause::stale_statement: return false;
  }
  return false;
}

Pool::~Pool() {
  if (!birthplace_.forked()) return;
  for (auto& connection : idle_) static_cast<void>(connection.release());
}

// One thread's place in the queue. Its turn comes with a connection, or with the room to open one.
struct Pool::Waiter {
  std::condition_variable called;
  std::unique_ptr<dialects::Connection> connection;
  bool turn = false;
};

void Pool::Loan::open(Deadline deadline) {
  if (connection_) return;
  auto* const pool = pool_;
  try {
    connection_ = pool->connect_(deadline);
  } catch (...) {
    pool_ = nullptr;
    pool->not_opened(true);
    throw;
  }
  pool->opened();
}

void Pool::Loan::end() noexcept {
  auto* const pool = std::exchange(pool_, nullptr);
  if (pool == nullptr) return;
  if (connection_) pool->give_back(std::move(connection_), sound_);
  else pool->not_opened(false);
}

std::optional<Pool::Loan> Pool::free_now() {
  if (!waiters_.empty()) return std::nullopt;
  if (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return Loan{*this, std::move(connection)};
  }
  if (open_ >= limit_) return std::nullopt;
  ++open_;
  return Loan{*this, nullptr};
}

std::optional<Pool::Loan> Pool::at_once() {
  const std::lock_guard guard(mutex_);
  return free_now();
}

Pool::Loan Pool::turn(Deadline deadline) {
  std::unique_lock guard(mutex_);
  if (auto loan = free_now()) return std::move(*loan);
  // Whoever gives a connection back may want it again at once: without an order it would win every time.
  Waiter waiter;
  waiters_.push_back(&waiter);
  if (!waiter.called.wait_until(guard, deadline, [&] { return waiter.turn; })) {
    std::erase(waiters_, &waiter);
    throw Failure(Cause::timed_out, "no connection of the pool became free in time (EngineOptions::connections)");
  }
  return {*this, std::move(waiter.connection)};
}

void Pool::opened() {
  bool again = false;
  {
    const std::lock_guard guard(mutex_);
    again = std::exchange(failed_, false);
  }
  if (again && on_reconnect_) on_reconnect_();
}

void Pool::not_opened(bool failed) noexcept {
  if (birthplace_.forked()) return;
  const std::lock_guard guard(mutex_);
  --open_;
  failed_ = failed_ || failed;
  admit();
}

void Pool::adopt(std::unique_ptr<dialects::Connection> connection) {
  const std::lock_guard guard(mutex_);
  idle_.push_back(std::move(connection));
  ++open_;
}

void Pool::admit() {
  for (; open_ < limit_ && !waiters_.empty(); waiters_.pop_front()) {
    ++open_;
    waiters_.front()->turn = true;
    waiters_.front()->called.notify_one();
  }
}

void Pool::give_back(std::unique_ptr<dialects::Connection> connection, bool sound) {
  if (birthplace_.forked()) {
    static_cast<void>(connection.release());
    return;
  }
  std::vector<std::unique_ptr<dialects::Connection>> dropped;  // closed after the mutex is free
  const std::lock_guard guard(mutex_);
  if (!sound || !connection->usable()) {
    // What broke this one has most likely broken those that were idle meanwhile, too.
    failed_ = true;
    dropped.swap(idle_);
    dropped.push_back(std::move(connection));
    open_ -= static_cast<unsigned>(dropped.size());
    admit();
  } else if (waiters_.empty()) {
    idle_.push_back(std::move(connection));
  } else {
    auto& first = *waiters_.front();
    waiters_.pop_front();
    first.connection = std::move(connection);
    first.turn = true;
    first.called.notify_one();
  }
}

}  // namespace dlock::store
