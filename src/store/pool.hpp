// This file knows how a few connections are shared: the last one used first, those who wait in the order they came,
// and a connection in doubt is thrown away.
#pragma once

#include "dialects/dialect.hpp"
#include "types/process.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace dlock::store {

// Whether a connection is as good as before such a failure.
bool harmless(Cause cause) noexcept;

// Threads: any. Owns: its connections. After fork() the child leaves them alone: they are the parent's.
class Pool {
 public:
  using Connect = std::function<std::unique_ptr<dialects::Connection>(Deadline)>;

  Pool(Connect connect, unsigned limit) : connect_(std::move(connect)), limit_(limit) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // One connection for one piece of work. Goes back to the pool only if the work said that it is sound.
  class Loan {
   public:
    // Without a connection: the room to open one.
    Loan(Pool& pool, std::unique_ptr<dialects::Connection> connection)
        : pool_(&pool), connection_(std::move(connection)) {}
    Loan(Loan&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), connection_(std::move(other.connection_)), sound_(other.sound_) {}
    Loan& operator=(Loan&&) = delete;
    ~Loan() { end(); }
    // Opens the connection, where that is still to be done. Throws Failure.
    void open(Deadline deadline);
    bool is_open() const noexcept { return connection_ != nullptr; }
    dialects::Connection* operator->() const noexcept { return connection_.get(); }
    void sound() noexcept { sound_ = true; }
    void end() noexcept;

   private:
    Pool* pool_;  // null: it has ended
    std::unique_ptr<dialects::Connection> connection_;
    bool sound_ = false;
  };

  // Waits for a free one, or opens one; the waiting counts against the deadline. Throws Failure.
  Loan take(Deadline deadline) {
    auto loan = turn(deadline);
    loan.open(deadline);
    return loan;
  }
  // Waits for a free one, or for the room to open one. Throws Failure.
  Loan turn(Deadline deadline);
  // What turn() answers, if it need not wait.
  std::optional<Loan> at_once();

  // Called, on the thread that asked, whenever a connection was opened again after one had failed. Set before use.
  void on_reconnect(std::function<void()> hook) { on_reconnect_ = std::move(hook); }

  // Adds a connection that was opened elsewhere.
  void adopt(std::unique_ptr<dialects::Connection> connection);

 private:
  struct Waiter;

  void give_back(std::unique_ptr<dialects::Connection> connection, bool sound);
  void opened();
  void not_opened(bool failed) noexcept;
  std::optional<Loan> free_now();  // with mutex_ held
  // With mutex_ held: lets as many of those who wait open a connection as there is room for.
  void admit();

  const Connect connect_;
  std::function<void()> on_reconnect_;
  const unsigned limit_;
  const Birthplace birthplace_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::vector<std::unique_ptr<dialects::Connection>> idle_;
  std::deque<Waiter*> waiters_;  // each is on its thread's stack
  unsigned open_ = 0;  // idle, lent or being opened
  bool failed_ = false;  // a connection, or the opening of one, since the last that was opened
};

}  // namespace dlock::store
