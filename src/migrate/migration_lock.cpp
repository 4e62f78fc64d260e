// The ways in and out of a round; how it is cut off, and how often that is asked for; how long a pause before the next
// try is.
#include "migrate/migration_lock.hpp"

#include "types/mutant.hpp"
#include "types/pause.hpp"
#include "types/worker.hpp"

#include <fmt/format.h>

#include <random>

namespace dlock::migrate {
namespace {

constexpr std::chrono::milliseconds between_tries{200};  // a statement that was not yet sent is not there to be cut off
constexpr std::chrono::seconds longest_try{5};

}  // namespace

void pause(Duration longest, const std::stop_token& stop) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const Duration length{std::uniform_int_distribution<Duration::rep>{longest.count() / 4, longest.count()}(random)};
  pause_until(later(BootClock::now(), length), stop);
}

void pause_before_retry(unsigned tries, const schema::Options& options) {
  pause(std::chrono::milliseconds{100} * std::min(tries * tries, 30U), options.stop);
}

struct CancelGuard::State : Worker {
  explicit State(dialects::Canceller& its_canceller) : canceller(its_canceller) {}
  dialects::Canceller& canceller;

  void run() override {
    for (; !is_closing(); pause(between_tries)) try {
        canceller.cancel(later(BootClock::now(), longest_try));
      } catch (const Failure&) {  // then the next try may reach the database
      }
  }
};

CancelGuard::CancelGuard(dialects::Canceller* canceller, const std::stop_token& asked) {
  if (canceller == nullptr) return;
  state_ = std::make_shared<State>(*canceller);
  callback_.emplace(asked, [this] {
    const MutexLock guard(state_->mutex);
    state_->try_start();  // if no thread is to be had the statement ends as it would have
  });
}

CancelGuard::~CancelGuard() {
  callback_.reset();
  if (state_) state_->finish();
}

MigrationLock::~MigrationLock() {
  cancelled_.reset();
  try {
    if (begun_) history_.script(history_.text("rollback"), soon());
    if (entered_ && locks_ && history_.has("unlock")) {
      const auto& answer = history_.run("unlock", {"key"}, {key_});
      if (answer.is_null(0, 0) || answer.integer(0, 0) != 1)
        tell_("the migrator's lock was no longer held at the end; the history's own guard was");
    }
  } catch (const std::exception& error) {
    // A broken connection rolls back and unlocks by itself.
    try {
      tell_(fmt::format("leaving the migrator's lock: {}", error.what()));
    } catch (...) {}
  }
}

Reading::~Reading() {
  try {
    history_.end_reading();
  } catch (const std::exception&) {  // a broken connection, which ends the transaction by itself
  }
}

bool MigrationLock::enter() {
  if (history_.has("begin")) {
    // Where that is itself the migrators' lock, it is asked for a second at a time. Elsewhere nothing but a pooler,
    // which has no connection to lend, keeps it from beginning.
    const auto until = history_.has("try_lock") ? soon() : Deadline(later(BootClock::now(), std::chrono::seconds{1}));
    try {
      history_.script(history_.text("begin"), until);
    } catch (const Failure& failure) {
      if (failure.cause() == Cause::locked || failure.cause() == Cause::timed_out) return false;
      throw;
    }
    begun_ = true;
  }
  if (history_.has("set_timeouts"))
    history_.run("set_timeouts", {"lock_ms", "statement_ms"},
                 {setting_of(options_.timeouts.ddl_lock), setting_of(options_.timeouts.statement)});
  if (!locks_ || planted("migrators_unlocked")) return entered_ = true;
  const auto& answer = history_.run("try_lock", {"key"}, {key_});
  if (answer.is_null(0, 0)) throw Failure(Cause::rejected, "the server refused the migrator's lock (it answered NULL)");
  return entered_ = answer.integer(0, 0) == 1;
}

std::string MigrationLock::holder() {
  if (!history_.has("lock_holder") || !history_.usable()) return {};
  const auto& answer = history_.run("lock_holder", {"key"}, {key_});
  return answer.rows() == 0 ? std::string{} : answer.text(0, 0);
}

void MigrationLock::commit() {
  cancelled_.reset();
  if (!begun_) return;
  history_.script(history_.text("commit"), soon());
  begun_ = false;  // one that failed may have left it open
}

}  // namespace dlock::migrate
