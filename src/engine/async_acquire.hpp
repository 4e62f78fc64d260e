// How an acquire goes on without a thread of its own.
#pragma once

#include "engine/acquiring.hpp"
#include "engine/wait/queued_acquire.hpp"

#include <dlock/options.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace dlock::engine {

// One acquire, whose steps are taken by whatever thread has the time for them. A thread is nobody's work here: without
// a job it is a grant of its own.
// Threads: one at a time. Owns: all that it needs. Fails: Error, as an acquire does; and then it is over.
class AsyncAcquire {
 public:
  // `called`: when it was asked for.
  AsyncAcquire(std::shared_ptr<Acquirer> acquirer, Name name, std::shared_ptr<const LockOptions> options,
               Patience patience, Instant called);
  // Leaves nothing behind; what it may have been granted is given back later.
  ~AsyncAcquire();
  AsyncAcquire(const AsyncAcquire&) = delete;
  AsyncAcquire& operator=(const AsyncAcquire&) = delete;

  // Asks for all of them in one statement, before any of them has gone on. No name twice.
  static void try_together(std::span<AsyncAcquire* const> all);
  // Whether it can be among them.
  bool plain() const noexcept {
    return !begun_ && !asked_ && !in_line_ && request_.mode == Mode::exclusive && reentrance_ != Reentrance::thread;
  }
  // Whether that has brought an answer, so that it goes on without another statement.
  bool answered() const noexcept;
  // When somebody was last seen who has the name, or none has been; and whether that is still an answer to who has no
  // time to look once more.
  Instant seen_held() const noexcept { return request_.refused_locked ? Instant{} : request_.refused_at; }
  static bool still_held(Instant seen, Instant now) noexcept { return GrantRequest::still_so(seen, now); }

  // These before it has gone on. It is the next in line, and looks before it tries. `before`: what this process has
  // been granted of the name just now.
  void wait_at_once(std::shared_ptr<Lease> before) noexcept;
  // It is out of patience, and tries once more, whoever is in line.
  void try_at_last() noexcept { at_last_ = true; }
  // Until it has to rest, or has come to an end. Empty: it rests, until there are news or rests_until().
  std::optional<Acquired> go_on(const std::function<void()>& news);
  bool begun() const noexcept { return begun_; }
  // Nobody waits for it any more: what it may have been granted is given back.
  void abandon() noexcept;
  // These tell the observers of the answer that somebody got.
  void tell_refused(bool waited) const {
    acquirer_->parts.context.tell_end(name_, request_.called, waited, Context::said_by(*options_));
  }
  void tell_broken(const Error& error) const { acquirer_->tell_deadlock(request_, error); }
  Instant rests_until() const noexcept { return queued_ && !again_at_ ? queued_->rests_until() : *again_at_; }
  // When an answer is late.
  Instant answered_by() const noexcept {
    return acquirer_->parts.context.answer_by(patience_.deadline, request_.called);
  }
  const Name& name() const noexcept { return name_; }

 private:
  bool is_in_vain() const noexcept;
  void take(const std::optional<store::Granted>& answer, Instant sent) noexcept;
  std::optional<Acquired> first();
  bool passes(const Error& error) noexcept;
  Acquired end(std::shared_ptr<Lease> held, const std::exception_ptr& broken);

  const std::shared_ptr<Acquirer> acquirer_;  // with all that it needs
  const Name name_;
  const std::shared_ptr<const LockOptions> options_;
  const Patience patience_;
  const Reentrance reentrance_;
  GrantRequest request_;
  std::optional<QueuedAcquire> queued_{};
  Backoff backoff_{std::chrono::seconds{1}};
  std::optional<Instant> again_at_{};                                                     // after what is passing
  enum class BatchAnswer { none, refused, granted, broken } answer_ = BatchAnswer::none;  // to try_together
  std::shared_ptr<Lease> held_{};
  std::exception_ptr broken_{};
  std::shared_ptr<Lease> before_{};
  bool asked_ = false, begun_ = false, over_ = false, in_line_ = false, at_last_ = false;
};

}  // namespace dlock::engine
