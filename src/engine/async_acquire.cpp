// What an asynchronous acquire does in each of its steps, and which failures do not end it; that by it only a job, and
// no thread, enters again what it holds. Which of them go in one statement: api/async.cpp.
#include "engine/async_acquire.hpp"

#include "engine/faults.hpp"

#include <dlock/error.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

// A thread enters nothing here: only a job does.
Reentrance without_threads(Reentrance chosen, const LockOptions& options) {
  return chosen == Reentrance::thread && !options.job ? Reentrance::none : chosen;
}

}  // namespace

AsyncAcquire::AsyncAcquire(std::shared_ptr<Acquirer> acquirer, Name name, std::shared_ptr<const LockOptions> options,
                           Patience patience, Instant called)
    : acquirer_(std::move(acquirer)),
      name_(std::move(name)),
      options_(std::move(options)),
      patience_(std::move(patience)),
      reentrance_(without_threads(acquirer_->parts.context.policy.reentrance_of(*options_), *options_)),
      request_(acquirer_->parts.context, name_, *options_, reentrance_) {
  request_.called = called;
}

AsyncAcquire::~AsyncAcquire() { abandon(); }

void AsyncAcquire::abandon() noexcept {
  if (std::exchange(over_, true)) return;
  try {
    queued_.reset();
    if (const auto late = std::move(held_))
      acquirer_->parts.releaser.release(late, acquirer_->parts.context.options.timeouts.release);
    if (request_.in_doubt || request_.unanswered) acquirer_->parts.late_attempts.free_later(request_);
  } catch (const std::exception&) {  // out of memory: it ends with its lease
  }
}

void AsyncAcquire::try_together(std::span<AsyncAcquire* const> all) {
  if (all.empty()) return;
  const auto& parts = all.front()->acquirer_->parts;
  auto& context = parts.context;
  std::vector<AsyncAcquire*> asking;
  asking.reserve(all.size());
  for (auto* one : all) {
    one->asked_ = true;
    // Who is in line in this process comes first, but for those who do not wait.
    // So does who takes what lingers here, which is no question to the table.
    if (parts.lingering.lingers(one->name_.text())) continue;
    if (!one->patience_.waits || !context.queues->anybody(one->name_.text())) asking.push_back(one);
  }
  if (asking.size() < 2) return;
  std::ranges::sort(asking, {}, [](const AsyncAcquire* one) { return std::string_view{one->name_.text()}; });
  std::vector<std::optional<store::Granted>> answers(asking.size());
  const auto sent = BootClock::now();
  try {
    context.ensure_running();
    std::vector<store::AcquireRequest> asks;
    asks.reserve(asking.size());
    for (auto* one : asking) {
      one->request_.first_sent = sent;
      asks.push_back(parts.attempts.acquire_request(one->request_, sent));
    }
    answers = context.table->acquire_together(asks, context.soon());
  } catch (const Failure& failure) {  // each asks for itself, which tells what is wrong if it still is
    context.events->emit_retry(failure);
    if (failure.may_have_run())
      for (auto* one : asking) one->request_.unanswered = true;
  } catch (const Error&) {
  } catch (const std::exception&) {  // out of memory, whether before or after it was sent
    for (auto* one : asking) one->request_.unanswered = true;
  }
  for (std::size_t i = 0; i < asking.size(); ++i) asking[i]->take(answers[i], sent);
}

void AsyncAcquire::take(const std::optional<store::Granted>& answer, Instant sent) noexcept {
  if (!answer) return;
  try {
    const auto end = acquirer_->parts.attempts.take_up(request_, *answer, sent, false, {answered_by(), patience_.stop});
    if (!end) return;
    held_ = *end;
    answer_ = held_ ? BatchAnswer::granted : BatchAnswer::refused;
  } catch (...) {
    broken_ = std::current_exception();
    answer_ = BatchAnswer::broken;
  }
}

// To ask once more what was refused: it is not this engine's own doing, nor may it linger somewhere.
bool AsyncAcquire::is_in_vain() const noexcept {
  return !request_.row_locked && !acquirer_->parts.context.renewer.has_leftovers(name_.text()) &&
         !acquirer_->parts.context.lingers_somewhere.load();
}

bool AsyncAcquire::answered() const noexcept {
  if (answer_ == BatchAnswer::refused) return !patience_.waits && is_in_vain();
  return answer_ != BatchAnswer::none;
}

void AsyncAcquire::wait_at_once(std::shared_ptr<Lease> before) noexcept {
  in_line_ = true;
  before_ = std::move(before);
}

// What is passing does not end a wait that lasts: it goes on later, and no thread waits for that.
bool AsyncAcquire::passes(const Error& error) noexcept {
  if (!is_transient(error.fault()) || !patience_.lasts()) return false;
  again_at_ = std::min(patience_.deadline, later(BootClock::now(), backoff_.next()));
  return true;
}

std::optional<Acquired> AsyncAcquire::go_on(const std::function<void()>& news) {
  if (!std::exchange(begun_, true))
    if (auto ended = first()) return ended;
  again_at_.reset();
  std::shared_ptr<Lease> held;
  std::exception_ptr broken;
  try {
    if (!queued_) {
      queued_.emplace(acquirer_->parts, request_, patience_);
      queued_->begin(news, std::exchange(before_, nullptr));
    }
    const auto ended = queued_->go_on();
    if (!ended) return std::nullopt;
    held = *ended;
  } catch (const Error& error) {
    if (passes(error)) {
      if (queued_ && !queued_->in_line()) queued_.reset();
      return std::nullopt;
    }
    broken = std::current_exception();
  } catch (...) {
    queued_.reset();  // out of memory: nobody is called for it any more
    throw;
  }
  return end(std::move(held), broken);
}

// Empty: it is to wait in line.
std::optional<Acquired> AsyncAcquire::first() {
  if (patience_.stop.stop_requested() && !held_) return end(nullptr, nullptr);
  std::exception_ptr broken = std::move(broken_);
  auto held = std::move(held_);
  const auto& name = name_.text();
  try {
    if (reentrance_ == Reentrance::thread && answer_ == BatchAnswer::none)
      if (auto entered = acquirer_->parts.reentry.reenter(name_, *options_, patience_.deadline)) {
        over_ = true;
        return Acquired(std::move(entered));
      }
    acquirer_->parts.context.ensure_running();
    const bool in_vain = answer_ == BatchAnswer::refused && is_in_vain();
    const bool asked = answer_ == BatchAnswer::granted || answer_ == BatchAnswer::broken || in_vain;
    const bool waits = !at_last_ && (in_line_ || (patience_.waits && acquirer_->parts.context.queues->anybody(name))) &&
                       !request_.enters_by_node(acquirer_->parts.context);
    if (!asked && !waits) {
      if (answer_ == BatchAnswer::none && !request_.unanswered) request_.first_sent = BootClock::now();
      // A step is over when a request is: it goes on in line.
      held = acquirer_->parts.attempts.try_first(
          request_, {std::min(patience_.deadline, acquirer_->parts.context.soon()), patience_.stop, patience_.waits});
    }
    if (!held && !broken) held = acquirer_->parts.reentry.enter_by_job(request_, patience_.deadline);
  } catch (const Error& error) {
    if (at_last_ || !patience_.waits || !passes(error)) broken = std::current_exception();
  }
  if (!held && !broken && patience_.lasts()) return std::nullopt;
  return end(std::move(held), broken);
}

Acquired AsyncAcquire::end(std::shared_ptr<Lease> held, const std::exception_ptr& broken) {
  queued_.reset();
  over_ = true;
  held = acquirer_->concluded(request_, patience_, std::move(held), broken);
  if (held && reentrance_ == Reentrance::thread && !request_.entered) acquirer_->parts.context.open_to_job(held);
  return {std::move(held), request_.found_locked};
}

}  // namespace dlock::engine
