// Campaigns for a lock, and serves one term after the other: when a term ends, in which order that is told and the lock
// released, when others are to come first, and which options are refused.
#include "api/background.hpp"
#include "api/open.hpp"
#include "engine/backoff.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/pause.hpp"

#include <dlock/election.hpp>
#include <dlock/error.hpp>

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

// On the stack of a thread that sets the stop token of a term of `whose`: what is registered on that may resign, and
// would wait for itself.
class Telling {
 public:
  explicit Telling(const void* whose) noexcept : whose_(whose) {}
  ~Telling() { innermost_ = outer_; }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

  static bool is_of(const void* whose) noexcept {
    const auto* one = innermost_;
    while (one != nullptr && one->whose_ != whose) one = one->outer_;
    return one != nullptr;
  }

 private:
  static thread_local const Telling* innermost_;
  const void* const whose_;
  const Telling* const outer_ = std::exchange(innermost_, this);
};

thread_local const Telling* Telling::innermost_ = nullptr;

}  // namespace

struct Term::State {
  explicit State(Lock its_lock) : lock(std::move(its_lock)) {}
  Lock lock;
  std::stop_source over{};
  const ForkGuard fork_guard{};
};

Term::Term(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
const std::string& Term::name() const noexcept { return state_->lock.name(); }
Token Term::token() const noexcept { return state_->lock.token(); }
std::stop_token Term::stop_token() const noexcept { return state_->over.get_token(); }

bool Term::valid() const noexcept {
  if (state_->over.stop_requested() || state_->fork_guard.forked()) return false;
  return planted("term_trusts_its_token") || state_->lock.valid();
}

Duration Term::remaining() const noexcept { return valid() ? state_->lock.remaining() : Duration{}; }

void Term::check() const {
  if (valid()) return;
  if (state_->fork_guard.forked())
    throw Error(Fault::misuse,
                fmt::format("the term of the leader of {} belongs to the parent of this process", in_quotes(name())));
  state_->lock.check();
  throw Error(Fault::lost, fmt::format("the term of the leader of {} (token {}) is over: it was given up",
                                       in_quotes(name()), number(token())));
}

std::optional<Loss> Term::loss() const noexcept { return state_->lock.loss(); }

void Term::fence(TransactionRef transaction, const FenceOptions& options) const {
  state_->lock.fence(transaction, options);
}

void Term::with_fence(TransactionRef transaction, const std::function<void()>& work,
                      const FenceOptions& options) const {
  state_->lock.with_fence(transaction, work, options);
}

// Threads: run() on its own; the rest any.
struct DLOCK_HIDDEN Election::State : api::Background {
  State(Engine engine_share, std::string its_name, ElectionOptions chosen)
      : name(std::move(its_name)),
        options(std::move(chosen)),
        callbacks("the election " + in_quotes(name), options.on_error),
        engine(std::move(engine_share)) {}

  const std::string name;
  const ElectionOptions options;
  const api::Callbacks callbacks;
  std::shared_ptr<Term::State> term GUARDED_BY(mutex){};  // from its grant until its lock is released
  bool term_ends GUARDED_BY(mutex) = false, resigned GUARDED_BY(mutex) = false;  // of that term
  bool telling GUARDED_BY(mutex) = false;                                        // its stop token is being set
  Engine engine;                                                                 // ends before what its calls use

  std::shared_ptr<Term::State> current() const {
    const MutexLock guard(mutex);
    return term;
  }

  // When it returns the stop token is set, by whomever. One that was lost is not resigned any more. The thread is woken
  // first: what the program has registered on the stop token may block.
  void end_term(const std::shared_ptr<Term::State>& which, bool by_resigning) noexcept {
    if (!begin_telling(which, by_resigning && which->lock.valid())) return await_token(*which);
    {
      const Telling here(this);
      which->over.request_stop();
    }
    if (forked()) return;  // by what was registered: the mutex may be that of a thread which is not here
    const MutexLock guard(mutex);
    telling = false;
    changed.notify_all();
  }

  // False: somebody else sets the stop token, or has.
  bool begin_telling(const std::shared_ptr<Term::State>& which, bool by_resigning) noexcept {
    const MutexLock guard(mutex);
    if (term != which || term_ends) return false;
    term_ends = telling = true;
    resigned = by_resigning;
    changed.notify_all();
    return true;
  }

  // Who ends a term sets its token next, before anything that is registered on it is called.
  static void await_token(const Term::State& ending) noexcept {
    while (!ending.over.stop_requested()) std::this_thread::sleep_for(std::chrono::microseconds{50});
  }

  void resign() noexcept {
    const auto which = current();
    if (!which || Telling::is_of(this)) return;
    end_term(which, true);
    if (is_here()) return;
    UniqueMutexLock guard(mutex);
    while (term == which) wait(guard);
  }

  void stop() noexcept {
    close();
    if (const auto which = current()) end_term(which, true);
    finish();
  }

  // One that throws has begun nothing: what hears of that finds the stop token set.
  void begin_office(const std::shared_ptr<Term::State>& next) {
    try {
      if (options.on_elected) options.on_elected(Term(next));
    } catch (...) {
      end_term(next, true);
      throw;
    }
  }
  void tell_deposed() const {
    if (options.on_deposed) options.on_deposed();
  }

  // False: it was stopped meanwhile.
  bool begin(const std::shared_ptr<Term::State>& next) {
    const MutexLock guard(mutex);
    if (closing) return false;
    term = next;
    term_ends = resigned = false;
    return true;
  }

  // Answers whether others are to come first now, when all that was registered on the stop token has returned.
  bool leave(const std::shared_ptr<Term::State>& served) noexcept {
    const bool steps_back = served->lock.loss() == Loss::max_hold;
    release(*served);
    UniqueMutexLock guard(mutex);
    term.reset();
    changed.notify_all();
    while (telling && !closing) wait(guard);
    return resigned || steps_back;
  }

  static void release(Term::State& served) noexcept {
    try {
      served.lock.release();
    } catch (...) {  // out of memory: the lease ends by itself
    }
  }

  // From the grant until the lock is released, and on_deposed has returned before.
  bool serve(Lock lock) {
    const auto next = std::make_shared<Term::State>(std::move(lock));
    const auto loss = next->lock.lost();  // before anybody else can see the lock
    if (!begin(next)) return false;
    const std::stop_callback lost(loss, [&] {
      if (!planted("election_deaf_to_loss")) end_term(next, false);
    });
    callbacks.run("on_elected", [&] { begin_office(next); });
    {
      UniqueMutexLock guard(mutex);
      while (!term_ends) wait(guard);
    }
    await_token(*next);
    if (planted("election_releases_first")) release(*next);
    callbacks.run("on_deposed", [&] { tell_deposed(); });
    return leave(next) && !planted("election_never_steps_back");
  }

  void work() override {
    const Job::Scope here(options.lock.job);
    engine::Backoff backoff(options.retry_pause);
    while (!is_closing()) {
      Duration pause{};
      try {
        auto lock = engine.lock(end(), name, options.lock);
        if (lock && lock->valid()) {
          if (serve(std::move(*lock))) pause = options.resign_pause;
          backoff.begin_anew();
        } else {
          pause = backoff.next();  // granted too late to be of use
        }
      } catch (const std::exception& failure) {
        if (ending()) return;
        callbacks.report(failure);
        pause = backoff.next();
      }
      pause_until(later(BootClock::now(), pause), end());
    }
  }
};

struct Election::Handle {
  std::shared_ptr<State> state;
};

Election::Election(const Engine& engine, std::string_view name, ElectionOptions options) {
  const Name checked(name);
  const auto whose = "the election " + in_quotes(checked.text());
  if (options.lock.mode != Mode::exclusive)
    throw Error(Fault::misuse,
                fmt::format("{} has one leader; LockOptions::mode must be exclusive or left unset, not {}", whose,
                            to_string(options.lock.mode)));
  if (options.lock.reentrance.value_or(Reentrance::none) != Reentrance::none)
    throw Error(Fault::misuse, fmt::format("{} is entered by nobody; LockOptions::reentrance must be none or left "
                                           "unset, not {}",
                                           whose, to_string(*options.lock.reentrance)));
  if (!options.lock.renew)
    throw Error(Fault::misuse, fmt::format("{} renews its terms; LockOptions::renew must not be false", whose));
  options.lock.reentrance = Reentrance::none;
  // A label of its own, though it is the engine's: what was given up neither stays in its row nor is passed on in
  // memory, where it would be a leader for whoever asks the table.
  if (!options.lock.label) options.lock.label = engine.label();
  engine.check(options.lock);
  api::check_positive("ElectionOptions::retry_pause", options.retry_pause);
  if (options.resign_pause < Duration{})
    throw Error(Fault::misuse,
                fmt::format("ElectionOptions::resign_pause {} us must not be negative", options.resign_pause.count()));
  handle_.reset(new Handle{std::make_shared<State>(engine.same(), checked.text(), std::move(options))});
  handle_->state->start(whose);
}

Election::~Election() {
  // After fork() the thread is the parent's, and whatever it had locked stays so.
  if (handle_->state->forked()) static_cast<void>(handle_.release());
  else handle_->state->stop();
}

std::shared_ptr<Election::State> Election::here() const {
  if (handle_->state->forked())
    throw Error(Fault::misuse,
                fmt::format("the election {} belongs to the parent of this process", in_quotes(handle_->state->name)));
  return handle_->state;
}

bool Election::is_leader() const noexcept {
  if (handle_->state->forked()) return false;
  const auto term = handle_->state->current();
  return term && Term(term).valid();
}

std::optional<Term> Election::term() const {
  const auto term = here()->current();
  if (!term || !Term(term).valid()) return std::nullopt;
  return Term(term);
}

// A share of the state for as long as the call takes: a callback that it waits for may destroy the election.
void Election::resign() {
  const auto state = here();
  state->resign();
}

void Election::stop() noexcept {
  if (handle_->state->forked()) return;
  const auto state = handle_->state;
  state->stop();
}

std::optional<Holder> Election::leader() const {
  const auto state = here();
  return leader_of(state->engine, state->name);
}

const std::string& Election::name() const noexcept { return handle_->state->name; }

}  // namespace v0
}  // namespace dlock
