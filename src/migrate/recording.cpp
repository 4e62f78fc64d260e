// The order of things when the history of the locks is made or taken away: look, send, look again where it failed.
#include "migrate/recording.hpp"

#include "migrate/migration_lock.hpp"
#include "types/digest.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dlock::migrate {
namespace {

std::string key_of(const dialects::TableNames& names) {
  return sha256(names.schema + '\0' + names.lock_history()).substr(0, 40);
}

enum PartKind : std::int64_t { the_table = 0, as_made = 1 };

}  // namespace

LockRecording::LockRecording(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                             MigrateOptions options)
    : TriggerChange(dialect, std::move(connector), std::move(options)) {}

void LockRecording::open() {
  if (!connect()) return;
  auto names = options_.names;
  const auto default_schema = connection_->default_schema(soon());
  if (names.schema.empty()) names.schema = default_schema;
  if (names.schema.empty())
    throw Error(Fault::misuse,
                "no schema is selected on this connection; name a database in the URL, or pass --schema");
  table_ = named(names, default_schema);
  statements_.emplace(dialect_, std::move(names));
}

void LockRecording::check_lock_table() {
  const auto& names = statements_->names();
  const auto status = names.status();
  const auto& there =
      connection_->run(statements_->at("relations", {"schema", "lock", "status", "history"}),
                       std::initializer_list<Argument>{names.schema, names.lock, status, names.history}, soon());
  if (there.integer(0, 1) == 0)
    throw MigrationError(MigrationError::Reason::pending, fmt::format("there is no lock table {}", shown(names)),
                         hint_command("up", table_));
}

// A trigger that cannot write it would keep every grant from ending.
void LockRecording::check_history_table() {
  try {
    connection_->run(statements_->at("recording_probe", {}), {}, soon());
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::schema) throw;
    throw MigrationError(
        MigrationError::Reason::drift,
        fmt::format("the table {} is not a history of locks: {}", statements_->names().lock_history(), failure.what()),
        "give it another name, or choose another table for the locks");
  }
}

bool LockRecording::settled(bool made) {
  const auto& names = statements_->names();
  const auto holder = names.holder(), history = names.lock_history(), family = names.recorders();
  const auto& rows = connection_->run(
      statements_->at("recording_parts", {"schema", "lock", "holder", "lock_history", "family", "recorder"}),
      std::initializer_list<Argument>{names.schema, names.lock, holder, history, family, statements_->recorder()},
      soon());
  parts_ = {};
  std::int64_t wanted = 0, found = 0;
  bool others = false;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const auto kind = rows.integer(i, 0);
    parts_.table = parts_.table || kind == PartKind::the_table;
    wanted += rows.integer(i, 2);
    found += kind == PartKind::as_made ? 1 : 0;
    others = others || (kind != PartKind::the_table && kind != PartKind::as_made);
    if (auto drop = rows.text(i, 1); !drop.empty()) parts_.drops.push_back(std::move(drop));
  }
  parts_.complete = parts_.table && found == wanted && !others;
  return made ? parts_.complete : !parts_.any();
}

Change LockRecording::bring(bool made) {
  for (unsigned tries = 0;; ++tries) {
    open();
    const auto table = shown(statements_->names());
    const auto script = statements_->script(made);
    Change already{false, fmt::format("the table {} {}", table, made ? "has its history already" : "has no history"),
                   script};
    if (made) check_lock_table();
    if (settled(made)) return already;
    if (options_.dry_run) return {true, {}, script};
    if (!enter()) {
      if (tries >= options_.ddl_retries)
        throw MigrationError(MigrationError::Reason::locked,
                             fmt::format("somebody else is making the history of the table {}, or removing it", table),
                             "try again when that is done");
      continue;  // it was waited for
    }
    try {
      if (settled(made)) {
        leave();
        return already;
      }
      replace(made);
      leave();
      return {true,
              made ? fmt::format("the table {} has a history now, {}{}", table, statements_->names().lock_history(),
                                 statements_->has("recording_grants")
                                     ? "; dlock-migrate grants prints what roles need that read or cut it"
                                     : "")
                   : fmt::format("the table {} has no history any more", table),
              script};
    } catch (const MigrationError&) {
      leave();
      throw;
    } catch (const Failure& failure) {
      leave();
      if (connected() && settled(made)) return already;  // somebody else was faster
      if (failure.cause() == Cause::permission)
        throw Failure(Cause::permission, failure.what() + statements_->needed(), failure.code());
      if (!is_transient(failure.cause()) || tries >= options_.ddl_retries) throw;
      if (options_.observer) options_.observer(std::string(failure.what()) + "; trying again");
    }
    pause(tries);
  }
}

bool LockRecording::enter() {
  if (!statements_->has("unlock")) return true;
  const auto key = key_of(statements_->names());
  return connection_->run(statements_->at("try_lock", {"key"}), std::initializer_list<Argument>{key}, soon())
             .integer(0, 0) == 1;
}

// Ends with the connection, if not before.
void LockRecording::leave() noexcept {
  try {
    if (!statements_->has("unlock") || !connected()) return;
    const auto key = key_of(statements_->names());
    connection_->run(statements_->at("unlock", {"key"}), std::initializer_list<Argument>{key}, soon());
  } catch (const std::exception&) { connection_.reset(); }
}

void LockRecording::replace(bool made) {
  in_transaction(*statements_, [&](const Send& send, std::string& undo) {
    if (made) {
      if (parts_.table) check_history_table();
      send(statements_->text("recording_table"));
    }
    // From here on it is not said to be complete until it is.
    if (parts_.table && statements_->has("recording_undone")) send(statements_->text("recording_undone"));
    if (made && !parts_.drops.empty() && statements_->has("recording_hold")) {
      send(statements_->text("recording_hold"));
      undo = statements_->text("recording_let_go");
    }
    for (const auto& drop : parts_.drops) send(drop);
    if (made)
      for (const auto& trigger : statements_->triggers()) send(trigger);
    else if (parts_.table) send(statements_->text("recording_drop"));
  });
  if (made && statements_->has("recording_done"))
    connection_->script(statements_->text("recording_done"), ddl_deadline());
}

}  // namespace dlock::migrate
