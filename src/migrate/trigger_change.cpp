// The course of a change of triggers: how long it may take, how it is tried again, and how it is given up.
#include "migrate/trigger_change.hpp"

#include "dialects/mutants.hpp"
#include "migrate/assessment.hpp"
#include "migrate/migration_lock.hpp"
#include "migrate/script_recorder.hpp"
#include "types/retry.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace dlock::migrate {

TriggerStatements::TriggerStatements(const dialects::Dialect& dialect, std::string_view sql, std::string_view subject,
                                     const dialects::WordFiller& filler)
    : dialect_(dialect),
      subject_(subject),
      statements_(fmt::format("{}\n{}", dialect.texts().migrator_sql, dialects::with_planted(sql, dialect.name())),
                  dialect.traits().marker, filler) {}

std::string TriggerStatements::needed() const {
  const auto grants = subject_ + "_grants";
  return has(grants) ? as_needed(inserted(at(grants, {"role"}), "the role") + ";") : std::string();
}

std::string TriggerStatements::printed(const std::string& statement) const {
  const auto print = subject_ + "_print";
  return has(print) ? inserted(at(print, {"statement"}), statement) : statement;
}

std::string TriggerStatements::written(std::string_view purpose, const std::vector<std::string>& statements) const {
  ScriptRecorder recorder(dialect_);
  recorder.comment(purpose);
  const auto add = [&](const std::string& sql) {
    if (!sql.empty()) recorder.script(sql, soon());
  };
  add(text_if_any("settings"));
  add(text_if_any("begin"));
  for (const auto& statement : statements) add(statement);
  add(text_if_any("commit"));
  return recorder.text();
}

TriggerChange::TriggerChange(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                             schema::Options options)
    : dialect_(dialect), options_(std::move(options)), connector_(std::move(connector)) {}

TriggerChange::~TriggerChange() = default;

std::string TriggerChange::gap(bool) const { return {}; }

schema::GuardReport TriggerChange::bring(bool made) {
  unsigned tries = 0;
  bool sent = false;
  return retry(
      [&] {
        sent = false;
        open();
        check(made);
        schema::GuardReport report;
        report.sql = statements().script(made);
        report.changed = !settled(made);
        if (report.changed && options_.dry_run) return report;
        sent = report.changed;
        if (sent) report.changed = try_to_replace(made);
        report.message = told(made, report.changed);
        return report;
      },
      [&](const Failure& failure) {
        if (!sent || !is_conflict(failure.cause()) || tries >= options_.ddl_retries) return false;
        const auto* refusal = dynamic_cast<const MigrationError*>(&failure);  // it advises to try again
        if (options_.observer)
          options_.observer((refusal != nullptr ? refusal->message() : failure.what()) + "; trying again");
        pause_before_retry(++tries, options_);
        return true;
      });
}

bool TriggerChange::try_to_replace(bool made) {
  try {
    return replace(made);
  } catch (const Failure& failure) {
    const bool looked = connected();
    if (looked && settled(made)) return false;  // somebody else was faster
    const auto more = gap(looked) + (failure.cause() == Cause::permission ? statements().needed() : std::string());
    if (more.empty()) throw;
    throw Failure(failure.cause(), failure.what() + more, failure.code(), failure.may_have_run());
  }
}

bool TriggerChange::connect() {
  if (options_.stop.stop_requested()) throw MigrationError(SchemaState::stopped, "stopped as asked");
  if (connected()) return false;
  connection_ = connector_->connect(later(BootClock::now(), options_.timeouts.connect));
  return true;
}

const Answer& TriggerChange::ask(std::string_view name, std::initializer_list<std::string_view> header,
                                 std::initializer_list<Argument> arguments) {
  return connection_->run(statements().at(name, header), {arguments.begin(), arguments.size()}, soon());
}

Deadline TriggerChange::ddl_deadline() const {
  return later(later(BootClock::now(), options_.timeouts.ddl_lock), std::chrono::seconds{30});
}

void TriggerChange::in_transaction(const std::function<void(const Send& send, std::string& undo)>& work) {
  const auto& all = statements();
  const Send send = [this, deadline = ddl_deadline()](const std::string& sql) { connection_->script(sql, deadline); };
  std::string undo;
  try {
    if (all.has("begin")) {
      connection_->script(all.text("begin"), later(BootClock::now(), options_.timeouts.ddl_lock));
      undo = all.text("rollback");
    }
    if (all.has("set_timeouts"))
      ask("set_timeouts", {"lock_ms", "statement_ms"},
          {setting_of(options_.timeouts.ddl_lock), setting_of(options_.timeouts.statement)});
    work(send, undo);
    if (all.has("commit")) send(all.text("commit"));
    else if (!undo.empty()) send(undo);
  } catch (const Failure&) {
    if (!undo.empty() && connection_->usable()) try {
        connection_->script(undo, soon());
      } catch (const std::exception&) { connection_.reset(); }
    throw;
  }
}

}  // namespace dlock::migrate
