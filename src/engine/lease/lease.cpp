// How trust moves and ends, also by max_hold; which leases are long enough to be renewed; when a renewal was late;
// whose a grant is once its Lock was moved; and which grants may change hands in memory.
#include "engine/lease/lease.hpp"

#include "engine/lease/trust.hpp"
#include "engine/session_id.hpp"
#include "types/mutant.hpp"
#include "types/process.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace dlock::engine {
namespace {

// Shorter leases are over before a renewal could be confirmed with some certainty.
constexpr Duration shortest_renewed = std::chrono::milliseconds{300};

using Mutexes = std::array<AnnotatedMutex, 32>;

// Never destroyed, and made when the program is loaded, so that no fork() comes in between.
Mutexes& mutexes() {
  static Mutexes& all = [&]() -> Mutexes& {
    auto& made = *new Mutexes;
    keep_free_at_fork(made);
    return made;
  }();
  return all;
}
[[maybe_unused]] const Mutexes& made_when_loaded = mutexes();

}  // namespace

Lease::Lease(Name name, std::string_view owner, Token token, const LeaseTerms& terms, Instant sent,
             std::optional<Instant> begun)
    : hand_over_state{0, 0, sent},
      name_(std::move(name)),
      owner_(owner),
      token_(token),
      ends_(terms.max_hold > Duration{} ? later(begun.value_or(sent), terms.max_hold) : Instant::max()),
      longest_(terms.lease),
      sent_(sent),
      until_(trust_from(sent, terms.lease, terms.margin).time_since_epoch().count()) {
  settle_on(terms, sent);
}

Duration LeaseTerms::left_of_lease(Instant begun, Instant now) const noexcept {
  if (max_hold == Duration{}) return lease;
  return std::clamp(std::chrono::floor<Duration>(later(begun, max_hold) - now), Duration{1}, lease);
}

// It is held for a few instructions, and inside of any other: some for all grants do.
AnnotatedMutex& Lease::mutex() const noexcept {
  auto& few = mutexes();
  return few[reinterpret_cast<std::uintptr_t>(this) / sizeof(Lease) % few.size()];
}

Instant Lease::trust_from(Instant sent, Duration lease, Duration margin) const noexcept {
  const auto until = trust_end(sent, lease, margin);
  return ends_ == Instant::max() ? until : std::min(until, ends_ - margin);
}

void Lease::settle_on(const LeaseTerms& terms, Instant from) noexcept {
  terms_ = terms;
  renewable_.store(terms.renew && terms.asked() >= shortest_renewed, std::memory_order_release);
  final_.store(later(from, terms.lease) >= ends_, std::memory_order_release);
}

store::LeaseKey Lease::key() const {
  const MutexLock guard(mutex());
  auto lease = terms_.lease;
  if (ends_ != Instant::max())
    lease = std::clamp(std::chrono::floor<Duration>(ends_ - BootClock::now()), Duration{}, lease);
  return {name_.text(), owner_, row_token(), lease, mode_};
}

// Who lets go of it looks at the pin afterwards: either it is seen there, or the end is seen here.
store::LeaseKey Lease::pinned_key() const {
  if (!planted("never_pinned")) pin();
  auto key = this->key();
  if (end_.load() != holding && !planted("ended_lock_fences")) key.owner = {};
  return key;
}

void Lease::trust_no_longer() noexcept {
  const MutexLock guard(mutex());
  trust(std::min(trusted_until(), BootClock::now()));
}

Duration Lease::room(Instant now) const {
  return std::chrono::floor<Duration>(ends_ - now) - terms().delay - std::chrono::milliseconds{1};
}

Instant Lease::last_renewal() const {
  const MutexLock guard(mutex());
  return ends_ == Instant::max() ? ends_ : ends_ - terms_.lease;
}

LeaseTerms Lease::terms() const {
  const MutexLock guard(mutex());
  return terms_;
}

Duration Lease::longest() const {
  const MutexLock guard(mutex());
  return longest_;
}

bool Lease::valid(Instant now) const noexcept {
  if (ended()) return false;
  if (now < trusted_until()) return true;
  int expected = holding;
  end_.compare_exchange_strong(expected, static_cast<int>(running_out()), std::memory_order_acq_rel);
  return false;
}

Duration Lease::remaining(Instant now) const noexcept {
  if (!valid(now)) return Duration{};
  return std::max(Duration{}, std::chrono::floor<Duration>(trusted_until() - now));
}

bool Lease::confirmed(Instant sent, Duration lease, std::optional<Duration>* overdue) {
  const MutexLock guard(mutex());
  const auto now = BootClock::now();
  if (!planted("late_answer_revives") && !valid(now)) return false;
  if (overdue != nullptr && now >= later(window(largest_share).latest, terms_.asked() / 8))
    *overdue = std::chrono::floor<Duration>(now - sent_);
  trust(std::max(trusted_until(), trust_from(sent, std::min(lease, terms_.lease), terms_.margin)));
  sent_ = std::max(sent_, sent);
  return true;
}

LeaseTerms Lease::ask_for(LeaseTerms terms, bool at_least) {
  const MutexLock guard(mutex());
  if (at_least && terms.lease < terms_.lease && !planted("ensure_shortens")) return terms_;
  longest_ = std::max(longest_, terms.lease);
  if (terms.lease >= terms_.lease) return terms;
  const auto now = BootClock::now();
  settle_on(terms, now);
  if (!planted("shorter_believed_late")) trust(std::min(trusted_until(), trust_from(now, terms.lease, terms.margin)));
  return terms;
}

bool Lease::extended(Instant sent, const LeaseTerms& terms, bool at_least) {
  const MutexLock guard(mutex());
  if (!valid(BootClock::now())) return false;
  if (!at_least || terms.lease >= terms_.lease) settle_on(terms, sent);
  trust(std::max(trusted_until(), trust_from(sent, terms.lease, terms.margin)));
  sent_ = std::max(sent_, sent);
  return true;
}

Window Lease::renewal(Share share) const {
  const MutexLock guard(mutex());
  return window(share);
}

Window Lease::window(Share share) const {
  std::optional<Duration> every;
  if (terms_.renew_every > Duration{}) every = terms_.renew_every;
  return renewal_window(sent_, terms_.asked(), every, share);
}

Instant Lease::last_sent() const {
  const MutexLock guard(mutex());
  return sent_;
}

std::stop_token Lease::lost() const noexcept {
  const MutexLock guard(mutex());
  if (!lost_.stop_possible()) {
    lost_ = std::stop_source();
    if (signalled_) lost_.request_stop();  // nobody has registered a callback yet
  }
  return lost_.get_token();
}

void Lease::signal_loss() noexcept {
  std::stop_source lost(std::nostopstate);
  std::unique_ptr<std::vector<std::stop_source>> others;
  {
    const MutexLock guard(mutex());
    signalled_ = true;
    lost = lost_;
    others = std::move(others_);
  }
  lost.request_stop();
  if (!others) return;
  for (auto& other : *others) other.request_stop();
}

bool Lease::signal_unheard() noexcept {
  const MutexLock guard(mutex());
  if (lost_.stop_possible() || others_) return false;
  signalled_ = true;
  return true;
}

void Lease::tell_also(const std::stop_source& other) {
  {
    const MutexLock guard(mutex());
    if (!signalled_) {
      if (!others_) others_ = std::make_unique<std::vector<std::stop_source>>();
      others_->push_back(other);
      return;
    }
  }
  other.request_stop();
}

void Lease::tell_no_longer(const std::stop_source& other) noexcept {
  const MutexLock guard(mutex());
  if (!others_) return;
  std::erase(*others_, other);
  if (others_->empty()) others_.reset();
}

void Lease::wanted_is(const std::optional<dlock::Wanted>& wanted) noexcept {
  const auto now = BootClock::now();
  const MutexLock guard(mutex());
  if (!wanted) {
    if (hint_) hint_->wanted.reset();
    return;
  }
  try {
    if (!hint_) hint_ = std::make_unique<Hint>();
    hint_->wanted = WantedSince{planted("wanted_since_told") ? now : now - wanted->waited, wanted->mode};
  } catch (const std::exception&) {  // out of memory: the next renewal says it again
  }
}

std::optional<WantedSince> Lease::wanted_since() const noexcept {
  const MutexLock guard(mutex());
  return hint_ ? hint_->wanted : std::nullopt;
}

std::optional<WantedSince> joined(const std::optional<WantedSince>& one,
                                  const std::optional<WantedSince>& other) noexcept {
  if (!one || !other) return one ? one : other;
  const auto rank = [](Mode mode) { return mode == Mode::shared ? 0 : mode == Mode::permits ? 1 : 2; };
  return WantedSince{std::min(one->since, other->since), rank(one->mode) < rank(other->mode) ? other->mode : one->mode};
}

std::stop_token Lease::asked() const noexcept {
  const MutexLock guard(mutex());
  if (!hint_) hint_ = std::make_unique<Hint>();
  if (!hint_->asked.stop_possible()) {
    hint_->asked = std::stop_source();
    if (hint_->told) hint_->asked.request_stop();  // nobody has registered a callback yet
  }
  return hint_->asked.get_token();
}

bool Lease::ask() noexcept {
  const MutexLock guard(mutex());
  return hint_ && !std::exchange(hint_->told, true) && hint_->asked.stop_possible();
}

void Lease::unask() noexcept {
  const MutexLock guard(mutex());
  hint_->told = false;
}

void Lease::signal_asked() noexcept {
  std::stop_source asked(std::nostopstate);
  {
    const MutexLock guard(mutex());
    asked = hint_->asked;
  }
  asked.request_stop();
}

bool Lease::lose(Loss loss) noexcept {
  int expected = holding;
  end_.compare_exchange_strong(expected, static_cast<int>(loss), std::memory_order_acq_rel);
  return this->loss() && !told_.exchange(true, std::memory_order_acq_rel);
}

bool Lease::let_go() noexcept {
  int expected = holding;
  return end_.compare_exchange_strong(expected, gone);  // see pinned_key()
}

std::optional<Loss> Lease::loss() const noexcept {
  const int end = end_.load(std::memory_order_acquire);
  if (end < 0) return std::nullopt;
  return static_cast<Loss>(end);
}

void Lease::taken_by(const JobRef& job, const JobRef& named) noexcept {
  if (!job) return;
  ++job->holds;
  const MutexLock guard(mutex());
  job_ = job;
  named_ = named;
}

void Lease::count_away(int by) noexcept {
  if (job_ && named_ && (adrift() || job_ != named_)) named_->away += by;
}

JobRef Lease::moved() noexcept {
  const MutexLock guard(mutex());
  if (!job_ || adrift()) return {};
  count_away(-1);
  --job_->holds;
  adrift_.store(true, std::memory_order_relaxed);
  count_away(+1);
  return job_;
}

bool Lease::used_by(const JobRef& job) noexcept {
  JobRef giver;  // goes after the mutex is free
  const MutexLock guard(mutex());
  if (!adrift() || ended()) return false;
  count_away(-1);
  adrift_.store(false, std::memory_order_relaxed);
  giver.swap(job_);
  job_ = job;
  ++job->holds;
  count_away(+1);
  return named_ != job;
}

JobRef Lease::belongs_to_nobody() noexcept {
  JobRef last;
  const MutexLock guard(mutex());
  count_away(-1);
  last.swap(job_);
  if (last && !adrift()) --last->holds;
  adrift_.store(false, std::memory_order_relaxed);
  return named_;
}

std::optional<JobRef> Lease::wrong_row() const {
  const MutexLock guard(mutex());
  if (adrift() ? !named_ : job_ == named_) return std::nullopt;
  return adrift() ? JobRef{} : job_;
}

void Lease::row_names(JobRef job) noexcept {
  const MutexLock guard(mutex());
  count_away(-1);
  named_.swap(job);
  count_away(+1);
}

bool may_go_on_in_memory(const LockOptions& options, const LeaseTerms& terms) noexcept {
  return (!options.job || planted("passed_on_without_job")) && (!options.label || planted("passed_on_without_label")) &&
         (options.metadata.empty() || planted("passed_on_without_metadata")) &&
         (options.at_least <= Duration{} || planted("passed_on_without_at_least")) &&
         (terms.max_hold == Duration{} || planted("passed_on_with_max_hold"));
}

}  // namespace dlock::engine
