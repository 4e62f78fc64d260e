// When the migrator refuses or gives up, and what it tells a person then; how it connects, how often it looks again at
// what it would refuse, and how long a step may take.
#include "migrate/migration_lock.hpp"
#include "migrate/migrator.hpp"
#include "types/retry.hpp"

#include <dlock/error.hpp>
#include <dlock/version.hpp>

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace dlock::migrate {
namespace {

constexpr std::size_t longest_error = 1900;  // bytes, in the history

std::string cut(std::string_view text) {
  auto end = std::min(text.size(), longest_error);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

}  // namespace

void TableMigrator::refuse_unless_movable(const Assessment& assessment) const {
  if (assessment.state == SchemaState::drift || assessment.state == SchemaState::incompatible)
    throw MigrationError(assessment.state, assessment.message, assessment.hint);
}

void TableMigrator::refuse_missing_schema(const SchemaSnapshot& found) const {
  if (found.schema) return;
  const auto& schema = history_->names().schema;
  if (!history_->has("create_schema"))
    throw Error(Fault::misuse,
                fmt::format("the schema \"{}\" does not exist, and none can be made in this database", schema));
  if (!options_.create_schema)
    throw Error(Fault::misuse,
                fmt::format("the schema \"{}\" does not exist; make it with: {}; or pass --create-schema", schema,
                            history_->text("create_schema")));
}

void TableMigrator::refuse_live_leases(const SchemaSnapshot& found) {
  if (!found.lock) return;
  if (history_->has("hold_table")) history_->script(history_->text("hold_table"), of_step());
  const auto live = history_->live_leases();
  if (live == 0) return;
  const auto text =
      fmt::format("{} live {} in the table {}", live, live == 1 ? "lease is" : "leases are", shown(history_->names()));
  const auto hint = "release them, or pass --force: their holders will lose them";
  const auto* row = found.rows.empty() ? nullptr : &found.rows.back();
  if (row == nullptr || row->done()) throw MigrationError(SchemaState::locked, text, hint);
  // A step that had to be tried again let somebody in.
  throw MigrationError(SchemaState::locked,
                       fmt::format("{}, while version {} is not whole: step {} of {} was reached", text, row->number,
                                   row->steps_done + 1, row->steps_total),
                       fmt::format("{} to make it whole; or {}", hint_command("up", table_), hint));
}

void TableMigrator::refuse_kept_history() {
  if (history_->keeps_locks())
    throw MigrationError(SchemaState::failed,
                         fmt::format("a history of the table {} is kept, in {}", shown(history_->names()),
                                     history_->names().lock_history()),
                         hint_command("history --remove --apply", table_) + " first");
}

void TableMigrator::refuse_locked(const std::string& holder) const {
  throw MigrationError(SchemaState::locked,
                       fmt::format("another migrator has the lock of the table {}{}", shown(history_->names()),
                                   holder.empty() ? holder : ": " + holder),
                       "wait for it, or pass a longer --lock-timeout");
}

void TableMigrator::refuse_taken_over(int version, const std::string& when) {
  throw MigrationError(SchemaState::locked, fmt::format("another migrator has taken over version {}{}", version, when),
                       "look with \"dlock-migrate status\"");
}

void TableMigrator::record(const MigrationStep& next, const Failure& failure) {
  // Without a connection the row tells by itself, when its lease ends.
  if (!step_ || !history_->has("fail_version") || !connection_->usable()) return;
  bool again = options_.cancel.stop_requested();
  try {
    retry([&] { history_->fail(next.migration->version, who_, cut(failure.what())); },
          // What cut off the step may have come too late for it, and ended this one.
          [&](const Failure& second) {
            return std::exchange(again, false) && second.cause() == Cause::timed_out && connection_->usable();
          });
  } catch (const Failure& second) { tell(fmt::format("the failure could not be recorded: {}", second.what())); }
}

void TableMigrator::give_up(const MigrationStep& next, const Failure& failure, unsigned tries) {
  const auto version = next.migration->version;
  const auto total = next.steps().size();
  const auto done = step_.value_or(0);
  const auto* error = dynamic_cast<const MigrationError*>(&failure);
  const bool stopped = error != nullptr && error->state() == SchemaState::stopped;
  record(next, failure);

  std::string what = !step_          ? fmt::format("{}version {}", stopped ? "" : "the beginning of ", version)
                     : done == total ? fmt::format("the end of version {}", version)
                                     : fmt::format("step {}/{} of version {}", done + 1, total, version);
  const bool begun = !failure.code().empty();  // of one that was stopped: cut off, that is, by the database
  what += stopped ? fmt::format(" was {} on {}: {}", begun ? "not finished" : "not begun", server_, failure.what())
                  : fmt::format(" failed on {}", server_);
  std::string left;
  if (failure.may_have_run() && (done == total || !transactional())) {
    left = "whether it took effect is not known";
  } else if (transactional()) {
    left = "the version is one transaction and was rolled back: nothing to undo";
  } else if (done == 0) {
    left = "nothing was changed";
  } else {
    left = fmt::format("{} already committed (each DDL commits by itself here): nothing to undo",
                       done == 1 ? std::string("step 1 is") : fmt::format("steps 1 to {} are", done));
  }
  const auto again = hint_command(next.up ? "up" : fmt::format("down --to {}", version - 1), table_);
  if (stopped) throw MigrationError(SchemaState::stopped, fmt::format("{}; {}", what, left), again + " to go on");

  const auto hint = fmt::format("fix the cause and {} again. Cause: {}", again, failure.what());
  switch (failure.cause()) {
    case Cause::locked:
    case Cause::deadlock:
    case Cause::serialization:
      throw MigrationError(SchemaState::locked,
                           fmt::format("{}: its locks were not obtained in {} tries; {}", what, tries + 1, left), hint,
                           failure.code());
    case Cause::permission:
      rethrow_with_right(
          Failure(Cause::permission, fmt::format("{}; {}; {}", what, left, failure.what()), failure.code()),
          "migrator");
    default: throw MigrationError(SchemaState::failed, fmt::format("{}; {}", what, left), hint, failure.code());
  }
}

void TableMigrator::rethrow_with_right(const Failure& failure, std::string_view role) const {
  if (history_) history_->add_right(failure, role);
  if (const auto* error = dynamic_cast<const MigrationError*>(&failure)) throw MigrationError(*error);
  throw Failure(failure);
}

void TableMigrator::open() {
  if (history_ && (!connection_ || connection_->usable())) return;
  history_.reset();
  canceller_.reset();
  connection_ = connector_->connect(later(BootClock::now(), options_.timeouts.connect));
  if (options_.cancel.stop_possible()) canceller_ = connector_->canceller(*connection_, soon());
  server_ = connection_->server();
  table_ = named_on(*connection_, names_);
  if (options_.dry_run) recorder_ = std::make_unique<ScriptRecorder>(dialect_);
  history_ = std::make_unique<History>(*connection_, dialect_, migrations_, table_.names, recorder_.get());
}

SchemaSnapshot TableMigrator::look(bool in_transaction) {
  if (simulated_) return *simulated_;
  const CancelGuard cancelled(canceller_.get(), options_.cancel);
  for (int again = 2;; --again) {
    SchemaSnapshot found;
    {
      std::optional<Reading> reading;
      if (in_transaction) reading.emplace(*history_);
      found = history_->find();
    }
    if (judge(found).state != SchemaState::drift || again == 0) return found;
    pause(std::chrono::milliseconds{50}, options_.stop);
  }
}

std::optional<MigrationError> TableMigrator::as_refusal(const Failure& failure) const {
  if (const auto* error = dynamic_cast<const MigrationError*>(&failure)) return *error;
  if (!options_.cancel.stop_requested()) return std::nullopt;
  // A wait for the migrators' lock that is cut off is answered with nothing.
  const bool unanswered = failure.cause() == Cause::rejected && failure.code().empty();
  if (failure.cause() != Cause::timed_out && failure.cause() != Cause::locked && !unanswered) return std::nullopt;
  return MigrationError(SchemaState::stopped, "cut off as asked", {}, failure.code());
}

Assessment TableMigrator::judge(const SchemaSnapshot& found) const {
  return assess(found, migrations_, DLOCK_VERSION, table_);
}

void TableMigrator::stop_point() const {
  if (options_.stop.stop_requested() || options_.cancel.stop_requested())
    throw MigrationError(SchemaState::stopped, "stopped as asked");
}

void TableMigrator::tell(const std::string& text) const {
  if (options_.observer && !recorder_) options_.observer(text);
}

void TableMigrator::note(const std::string& text) const {
  if (recorder_) recorder_->comment(text);
}

Deadline TableMigrator::of_step() const {
  // The server's own bound comes first, where it has one.
  constexpr Duration grace = std::chrono::milliseconds{500};
  if (options_.timeouts.statement <= Duration{}) return Deadline::max();
  return later(later(BootClock::now(), options_.timeouts.statement), grace);
}

}  // namespace dlock::migrate
