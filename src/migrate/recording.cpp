// The order of things when the history of the locks is made or taken away: look, send, look again where it failed.
#include "migrate/recording.hpp"

#include "migrate/migration_lock.hpp"
#include "types/digest.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace dlock::migrate {
namespace {

// PostgreSQL keeps milliseconds in 32 bits.
constexpr Duration longest_setting = std::chrono::days{20};

std::int64_t milliseconds(Duration duration) {
  return std::int64_t{std::chrono::ceil<std::chrono::milliseconds>(std::min(duration, longest_setting)).count()};
}

std::string key_of(const dialects::TableNames& names) {
  return sha256(names.schema + '\0' + names.lock_history()).substr(0, 40);
}

enum PartKind : std::int64_t { the_table = 0, as_made = 1 };

}  // namespace

LockRecording::LockRecording(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                             MigrateOptions options)
    : dialect_(dialect), connector_(std::move(connector)), options_(std::move(options)) {}

LockRecording::~LockRecording() = default;

void LockRecording::open() {
  if (connection_ && connection_->usable()) return;
  connection_ = connector_->connect(later(BootClock::now(), options_.connect_timeout));
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
    throw MigrationError(MigrationError::Kind::pending, fmt::format("there is no lock table {}", shown(names)),
                         hint_command("up", table_));
}

// A trigger that cannot write it would keep every grant from ending.
void LockRecording::check_history_table() {
  try {
    connection_->run(statements_->at("recording_probe", {}), {}, soon());
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::schema) throw;
    throw MigrationError(
        MigrationError::Kind::drift,
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

RecordingChange LockRecording::bring(bool made) {
  for (unsigned tries = 0;; ++tries) {
    if (options_.stop.stop_requested()) throw MigrationError(MigrationError::Kind::stopped, "stopped as asked");
    open();
    const auto table = shown(statements_->names());
    const auto script = statements_->script(made);
    const RecordingChange already{
        false, fmt::format("the table {} {}", table, made ? "has its history already" : "has no history"), script};
    if (made) check_lock_table();
    if (settled(made)) return already;
    if (options_.dry_run) return {true, {}, script};
    if (!enter()) {
      if (tries >= options_.ddl_retries)
        throw MigrationError(MigrationError::Kind::locked,
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
      if (connection_ && connection_->usable() && settled(made)) return already;  // somebody else was faster
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
    if (!statements_->has("unlock") || !connection_ || !connection_->usable()) return;
    const auto key = key_of(statements_->names());
    connection_->run(statements_->at("unlock", {"key"}), std::initializer_list<Argument>{key}, soon());
  } catch (const std::exception&) { connection_.reset(); }
}

void LockRecording::replace(bool made) {
  const auto deadline = later(later(BootClock::now(), options_.ddl_lock_timeout), std::chrono::seconds{30});
  const auto send = [&](const std::string& sql) { connection_->script(sql, deadline); };
  const auto send_if_there = [&](std::string_view name) {
    if (statements_->has(name)) send(statements_->text(name));
  };
  // An open transaction and tables that are held end with the connection, if not before.
  std::string undo;
  try {
    if (statements_->has("begin")) {
      connection_->script(statements_->text("begin"), later(BootClock::now(), options_.ddl_lock_timeout));
      undo = statements_->text("rollback");
    }
    if (statements_->has("set_timeouts"))
      connection_->run(statements_->at("set_timeouts", {"lock_ms", "statement_ms"}),
                       std::initializer_list<Argument>{milliseconds(options_.ddl_lock_timeout),
                                                       milliseconds(options_.statement_timeout)},
                       soon());
    if (made) {
      if (parts_.table) check_history_table();
      send(statements_->text("recording_table"));
    }
    // From here on it is not said to be complete until it is.
    if (parts_.table) send_if_there("recording_undone");
    if (made && !parts_.drops.empty() && statements_->has("recording_hold")) {
      send(statements_->text("recording_hold"));
      undo = statements_->text("recording_let_go");
    }
    for (const auto& drop : parts_.drops) send(drop);
    if (made)
      for (const auto& trigger : statements_->triggers()) send(trigger);
    else if (parts_.table) send(statements_->text("recording_drop"));
    if (statements_->has("commit")) send(statements_->text("commit"));
    else if (!undo.empty()) send(undo);
    undo.clear();
    if (made) send_if_there("recording_done");
  } catch (const Failure&) {
    if (!undo.empty() && connection_->usable()) give_back(undo);
    throw;
  }
}

void LockRecording::give_back(const std::string& sql) noexcept {
  try {
    connection_->script(sql, soon());
  } catch (const std::exception&) { connection_.reset(); }
}

void LockRecording::pause(unsigned tries) const {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, options_.stop, std::chrono::milliseconds{100} * std::min(tries + 1, 20U), [] { return false; });
}

}  // namespace dlock::migrate
