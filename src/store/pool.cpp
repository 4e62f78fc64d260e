// Who has the next connection, and when one is opened; which failures break one, and which others go with it; how long
// one that was idle may be silent; when one that is opened counts as a reconnection; and what is said where none comes.
// Connections are opened and closed outside of its mutex.
#include "store/pool.hpp"

#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <stop_token>
#include <utility>

namespace dlock::store {

namespace {

// So many servers may be at work at once on what nobody waits for; and so many sockets be kept for them, of those that
// this process may have.
std::size_t most_unanswered() noexcept {
  constexpr rlim_t most = 100;
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? std::min(most, files.rlim_cur / 8) : most;
}

// A request that is under way is answered in one, mostly.
constexpr int trips_to_come_back = 2;

// For so long after a connection could not be opened one that owes an answer is the better one: an opening may wait for
// what the answer waits for, and longer.
constexpr std::chrono::seconds time_without_opening{10};

// With words of its own: those of an exception are shared with whoever still handles it.
std::optional<Failure> copy_of(const Failure& failure) noexcept {
  try {
    return Failure(failure.cause(), std::string(failure.what()), failure.code(), failure.may_have_run());
  } catch (const std::exception&) { return std::nullopt; }  // out of memory
}

// Why there is no connection, and before that what the last request on one failed with, if that is known.
Failure after(const std::optional<Failure>& unanswered, const Failure& why) {
  const bool untimely = why.cause() == Cause::timed_out || why.cause() == Cause::refused;
  if (!unanswered || !untimely || planted("cause_hidden_by_pool")) return why;
  const auto& known = why.cause() == Cause::refused ? why : *unanswered;
  return {known.cause(), fmt::format("{}; {}", unanswered->what(), why.what()), unanswered->code()};
}

}  // namespace

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
  if (!fork_guard_.forked()) return;
  for (auto& connection : idle_) static_cast<void>(connection.release());
  for (auto& connection : draining_) static_cast<void>(connection.release());
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
  } catch (const Failure& failure) {
    pool_ = nullptr;
    pool->not_opened(failure);
    const MutexLock guard(pool->mutex_);
    throw after(pool->unanswered_, failure);
  } catch (...) {
    pool_ = nullptr;
    pool->not_opened(std::nullopt);
    throw;
  }
  pool->opened(*connection_, deadline);
}

void Pool::Loan::end() noexcept {
  auto* const pool = std::exchange(pool_, nullptr);
  if (pool == nullptr) return;
  if (connection_) pool->give_back(std::move(connection_), state_, std::move(failure_));
  else pool->not_opened(std::nullopt);
}

std::optional<Pool::Loan> Pool::free_now(Opening opening) {
  if (!waiters_.empty()) return std::nullopt;
  const bool may_open = open_ < limit_ && (opening == Opening::at_once || lent_ == 0);
  // The last one owes no answer, unless all do.
  if (!idle_.empty() &&
      (idle_.back()->at_rest() || !may_open || BootClock::now() < open_again_ || planted("unanswered_lent"))) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    lend();
    return Loan{*this, std::move(connection), Loan::Before::idle};
  }
  if (!may_open) return std::nullopt;
  ++open_;
  return Loan{*this, nullptr};
}

std::optional<Pool::Loan> Pool::at_once() {
  const MutexLock guard(mutex_);
  return free_now(Opening::at_once);
}

Pool::Loan Pool::borrow(Deadline deadline, Opening opening) {
  Waiter waiter;
  // Ends only after what is locked below is free again.
  const std::stop_callback stopped(deadline.stop(), [&] {
    const MutexLock guard(mutex_);
    waiter.called.notify_one();
  });
  UniqueMutexLock guard(mutex_);
  if (auto loan = free_now(opening)) return std::move(*loan);
  // Whoever gives a connection back may want it again at once: without an order it would win every time.
  waiters_.push_back(&waiter);
  // Those before it wait for what is lent out, though there may be room: it would wait for that behind them.
  if (opening == Opening::at_once && !planted("room_not_used")) admit();
  const auto lendings_before = lendings_, answers_before = answers_;
  const bool others_at_work = lent_ > 0;
  const auto called = [&] { return waiter.turn || deadline.stopped(); };
  if (opening == Opening::if_need_be && open_ < limit_) {
    const auto back = std::min(deadline.at(), later(BootClock::now(), trips_to_come_back * round_trip_.estimate()));
    waiter.called.wait_until(guard, back, called);
    if (waiter.turn) return {*this, std::move(waiter.connection)};
    if (open_ < limit_ && !deadline.stopped()) {
      std::erase(waiters_, &waiter);
      ++open_;
      return {*this, nullptr};
    }
  }
  waiter.called.wait_until(guard, deadline.at(), called);
  if (!waiter.turn) {
    std::erase(waiters_, &waiter);
    if (deadline.stopped()) throw Failure(Cause::timed_out, "it was stopped while it waited for a connection");
    throw after(unanswered_, none_came(others_at_work || lendings_ != lendings_before, answers_ != answers_before));
  }
  return {*this, std::move(waiter.connection)};
}

void Pool::opened(dialects::Connection& connection, const Deadline& deadline) {
  bool again = false;
  {
    const MutexLock guard(mutex_);
    lend();
    again = std::exchange(failed_, false);
    not_opened_.reset();
    open_again_ = {};
  }
  if (again && on_reconnect_) on_reconnect_(connection, deadline.share(2));
}

void Pool::not_opened(const std::optional<Failure>& why) noexcept {
  if (fork_guard_.forked()) return;
  const MutexLock guard(mutex_);
  --open_;
  if (why) {
    failed_ = true;
    not_opened_ = copy_of(*why);
    open_again_ = later(BootClock::now(), time_without_opening);
  }
  admit();
}

Failure Pool::none_lent() const {
  const MutexLock guard(mutex_);
  return after(unanswered_, {Cause::timed_out,
                             "no connection of the pool could be had in time, for the requests before this one "
                             "(EngineOptions::connections)"});
}

// Where none was at work all the time, it is no lack of connections. One that is opened anew at the very end is.
Failure Pool::none_came(bool others_worked, bool answered) const {
  if (not_opened_ && lent_ == 0) return {not_opened_->cause(), not_opened_->what(), not_opened_->code()};
  if (!others_worked && lent_ == 0 && open_ > idle_.size())
    return {Cause::refused, "no connection could be opened in time: the database, or the way to it, is silent"};
  const std::string none = "no connection of the pool became free in time";
  if (!answered)
    return {Cause::timed_out, none + ", and no request on one was answered meanwhile (EngineOptions::connections)"};
  return {Cause::timed_out, none + " (EngineOptions::connections)"};
}

void Pool::adopt(std::unique_ptr<dialects::Connection> connection, BootClock::duration round_trip) {
  round_trip_.answered(round_trip);
  const MutexLock guard(mutex_);
  idle_.push_back(std::move(connection));
  ++open_;
}

void Pool::lend() noexcept {
  ++lent_;
  ++lendings_;
}

Pool::Use Pool::use() const {
  const MutexLock guard(mutex_);
  const auto open = static_cast<unsigned>(idle_.size()) + lent_;
  return {limit_, open, lent_, open_ - open, waiters_.size()};
}

void Pool::admit() {
  for (; open_ < limit_ && !waiters_.empty(); waiters_.pop_front()) {
    ++open_;
    waiters_.front()->turn = true;
    waiters_.front()->called.notify_one();
  }
}

// What is silent longest has been silent since it was last used, if it is the network that has forgotten it. The other
// half is for another connection; but before a locked row can have been told of, silence says nothing.
Deadline Pool::Loan::promptly(const Deadline& deadline) const {
  const bool may_stall = before_ == Before::idle && connection_ && connection_->can_stall();
  if (!may_stall || planted("silent_one_has_all_time")) return deadline;
  auto half = deadline.share(2);
  if (planted("locked_one_called_silent")) return half;
  const auto told = later(BootClock::now(), connection_->lock_wait() + trips_to_come_back * pool_->round_trip());
  if (half.at() < told) return deadline.no_later_than(told);
  return half;
}

void Pool::Loan::failed(const Failure& failure, const Deadline& deadline) noexcept {
  const bool late = failure.cause() == Cause::timed_out, stopped = deadline.stopped();
  // Where nothing was sent for want of time, the connection is as good as before; where an answer is late that need not
  // be waited for, it reads that before the next request.
  if (harmless(failure.cause()) || (late && !failure.may_have_run()) ||
      (late && !stopped && connection_->usable() && !planted("late_answer_breaks")))
    sound();
  else if (stopped) state_ = State::given_up;
  if (!harmless(failure.cause()) && !stopped) failure_ = copy_of(failure);
}

void Pool::note(Loan::State state, std::optional<Failure> failure) noexcept {
  // Where nothing was sent for want of time, it is as if nothing had been asked.
  const bool nothing_sent = failure && failure->cause() == Cause::timed_out && !failure->may_have_run();
  if (nothing_sent) return;
  if (failure) {
    unanswered_ = std::move(failure);
  } else if (state == Loan::State::sound) {
    unanswered_.reset();
    ++answers_;
  }
}

void Pool::give_back(std::unique_ptr<dialects::Connection> connection, Loan::State state,
                     std::optional<Failure> failure) {
  if (fork_guard_.forked()) {
    static_cast<void>(connection.release());
    return;
  }
  const bool late = failure && failure->cause() == Cause::timed_out && failure->may_have_run();
  const bool owes =
      (state == Loan::State::given_up || (state == Loan::State::broken && late)) && !connection->drain(Deadline::min());
  if (owes) drain(Deadline::min());
  std::vector<std::unique_ptr<dialects::Connection>> dropped;  // closed after the mutex is free
  std::unique_ptr<dialects::Connection> oldest;                // likewise
  const MutexLock guard(mutex_);
  --lent_;
  note(state, std::move(failure));
  if (state == Loan::State::given_up) {
    if (owes) keep_until_drained(std::move(connection));
    --open_;
    admit();
  } else if (state == Loan::State::broken || (!connection->usable() && !planted("broken_connection_lent"))) {
    // What broke this one has most likely broken those that were idle meanwhile, too.
    failed_ = true;
    dropped.swap(idle_);
    open_ -= static_cast<unsigned>(dropped.size()) + 1;
    if (owes) keep_until_drained(std::move(connection));
    admit();
  } else if (waiters_.empty()) {
    // The last one used is the next, unless it has to wait for an answer first.
    try {
      idle_.insert(connection->at_rest() ? idle_.end() : idle_.begin(), std::move(connection));
    } catch (const std::exception&) {  // out of memory: it is closed
      --open_;
      oldest = std::move(connection);
    }
  } else {
    auto& first = *waiters_.front();
    waiters_.pop_front();
    lend();
    first.connection = std::move(connection);
    first.turn = true;
    first.called.notify_one();
  }
  if (draining_.size() > most_unanswered()) {
    oldest = std::move(draining_.front());
    draining_.pop_front();
  }
}

void Pool::keep_until_drained(std::unique_ptr<dialects::Connection>&& connection) noexcept {
  try {
    draining_.push_back(std::move(connection));
  } catch (const std::exception&) {  // out of memory: nobody waits for its server
  }
}

void Pool::drain(const Deadline& deadline) noexcept {
  std::list<std::unique_ptr<dialects::Connection>> left;
  {
    const MutexLock guard(mutex_);
    left.swap(draining_);
  }
  std::erase_if(left, [&](const auto& connection) { return connection->drain(deadline); });
  const MutexLock guard(mutex_);
  draining_.splice(draining_.begin(), left);
}

}  // namespace dlock::store
