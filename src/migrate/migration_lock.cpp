// The ways in and out of a round.
#include "migrate/migration_lock.hpp"

#include "types/mutant.hpp"

#include <fmt/format.h>

namespace dlock::migrate {

MigrationLock::~MigrationLock() {
  cancelled_.reset();
  try {
    if (begun_) history_.script(history_.text("rollback"), soon());
    if (entered_ && locks_ && history_.has("unlock")) {
      const auto& answer = history_.run("unlock", {"key"}, {key_}, soon());
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
    history_.end_reading(soon());
  } catch (const std::exception&) {  // a broken connection, which ends the transaction by itself
  }
}

bool MigrationLock::begin() {
  try {
    history_.script(history_.text("begin"), later(BootClock::now(), std::chrono::seconds{1}));
  } catch (const Failure& failure) {
    if (failure.cause() == Cause::locked || failure.cause() == Cause::timed_out) return false;
    throw;
  }
  return begun_ = true;
}

bool MigrationLock::enter() {
  const bool fresh = !begun_;
  if (history_.has("begin") && fresh && !begin()) return false;
  if (history_.has("set_timeouts") && fresh)
    history_.run("set_timeouts", {"lock_ms", "statement_ms"},
                 {setting_of(options_.timeouts.ddl_lock), setting_of(options_.timeouts.statement)}, soon());
  if (!locks_ || planted("migrators_unlocked")) return entered_ = true;
  const auto& answer = history_.run("try_lock", {"key"}, {key_}, soon());
  if (answer.is_null(0, 0)) throw Failure(Cause::rejected, "the server refused the migrator's lock (it answered NULL)");
  return entered_ = answer.integer(0, 0) == 1;
}

std::string MigrationLock::holder() {
  if (!history_.has("lock_holder")) return {};
  const auto& answer = history_.run("lock_holder", {"key"}, {key_}, soon());
  return answer.rows() == 0 ? std::string{} : answer.text(0, 0);
}

void MigrationLock::commit() {
  cancelled_.reset();
  if (!begun_) return;
  begun_ = false;  // after a commit that failed there is nothing to roll back, or nobody to ask
  history_.script(history_.text("commit"), soon());
}

}  // namespace dlock::migrate
