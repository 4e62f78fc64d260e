// What the triggers are called that write the history of the locks, when all are there, what is sent to make them or
// take them away, and who of several may. How often and how long: trigger_change.cpp.
#include "migrate/recording.hpp"

#include "migrate/migration_lock.hpp"
#include "migrate/script_recorder.hpp"
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

constexpr std::string_view makers[] = {"recording_of_lock", "recording_of_holders", "recording_of_leaving"};

// A change of the text is another recorder.
std::string recorder_of(const dialects::Dialect& dialect, const dialects::TableNames& names) {
  return names.recorders() + sha256(std::string(dialect.texts().recording_sql)).substr(0, 8) + "_";
}

dialects::WordFiller filler_of(const dialects::Dialect& dialect, const dialects::TableNames& names,
                               const std::string& recorder) {
  const auto quote = [&dialect](std::string_view identifier) { return dialect.quote(identifier); };
  return [=, tables = dialects::filler_of(names, quote)](std::string_view word) {
    const auto qualified = [&](std::string_view name) {
      return names.schema.empty() ? quote(name) : quote(names.schema) + "." + quote(name);
    };
    const auto named_by = [&](std::string_view prefix) {
      return word.starts_with(prefix) ? std::optional(recorder + std::string(word.substr(prefix.size())))
                                      : std::nullopt;
    };
    if (word == "lock_name") return quote(names.lock);
    if (word == "holder_name") return quote(names.holder());
    if (word == "lock_history_name") return quote(names.lock_history());
    if (word == "history_index") return quote(names.lock_history() + "_name");
    if (word == "recorder") return recorder;
    if (const auto name = named_by("trigger_")) return quote(*name);
    if (const auto name = named_by("part_")) return qualified(*name);
    if (const auto name = named_by("routine_")) {
      if (names.schema.empty())
        throw Error(Fault::misuse, "these statements name the schema: pass --schema, or a URL instead of the dialect");
      return qualified(*name);
    }
    return tables(word);
  };
}

const Answer& run_on(dialects::Connection& connection, const dialects::Statement& statement,
                     std::initializer_list<Argument> arguments) {
  return connection.run(statement, {arguments.begin(), arguments.size()}, soon());
}

}  // namespace

RecordingStatements::RecordingStatements(const dialects::Dialect& dialect, dialects::TableNames names)
    : TriggerStatements(dialect, dialect.texts().recording_sql, "recording",
                        filler_of(dialect, names, recorder_of(dialect, names))),
      names_(std::move(names)),
      recorder_(recorder_of(dialect, names_)) {}

std::vector<std::string> RecordingStatements::triggers() const {
  std::vector<std::string> result;
  for (const auto name : makers)
    if (has(name)) result.push_back(text(name));
  return result;
}

std::string RecordingStatements::script(bool made) const {
  if (!made)
    return written(fmt::format("the history of the table {} is forgotten, and not written any more", names_.lock),
                   {text_if_any("recording_forget"), text("recording_drop")});
  std::vector<std::string> statements{text("recording_table"), text_if_any("recording_forget")};
  for (const auto& trigger : triggers()) statements.push_back(printed(trigger));
  statements.push_back(text_if_any("recording_done"));
  return written(
      fmt::format("each grant of the table {} that ends leaves a row in {}", names_.lock, names_.lock_history()),
      statements);
}

RecordingParts recording_parts(dialects::Connection& connection, const RecordingStatements& statements) {
  const auto& names = statements.names();
  const auto &holder = names.holder(), &history = names.lock_history(), &family = names.recorders();
  const auto& rows = run_on(
      connection, statements.at("recording_parts", {"schema", "lock", "holder", "lock_history", "family", "recorder"}),
      {names.schema, names.lock, holder, history, family, statements.recorder()});
  RecordingParts parts;
  std::int64_t wanted = 0, found = 0;
  bool as_made = true;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const auto kind = rows.integer(i, 0);
    auto drop = rows.text(i, 1);
    parts.table = parts.table || kind == PartKind::the_table;
    wanted += rows.integer(i, 2);
    found += kind == PartKind::as_made ? 1 : 0;
    if (kind != PartKind::the_table && kind != PartKind::as_made) {
      as_made = false;
      parts.others = parts.others || (!drop.empty() && drop.find(statements.recorder()) == std::string::npos);
    }
    if (!drop.empty()) parts.drops.push_back(std::move(drop));
  }
  parts.complete = parts.table && found == wanted && as_made;
  return parts;
}

bool lacks_recorder(dialects::Connection& connection, const RecordingStatements& statements) {
  const auto parts = recording_parts(connection, statements);
  if (!parts.table || parts.complete || parts.others) return false;
  if (!statements.has("triggers_seen")) return true;
  const auto& names = statements.names();
  const auto holder = names.holder();
  return run_on(connection, statements.at("triggers_seen", {"schema", "lock", "holder"}),
                {names.schema, names.lock, holder})
             .integer(0, 0) != 0;
}

// Ends with the connection, if not before.
class LockRecording::Turn {
 public:
  explicit Turn(LockRecording& recording) : recording_(recording), needed_(recording.statements_->has("unlock")) {
    if (needed_ && recording_.ask("try_lock", {"key"}, {key_}).integer(0, 0) != 1)
      throw MigrationError(SchemaState::locked,
                           fmt::format("somebody else is making the history of the table {}, or removing it",
                                       shown(recording_.statements_->names())),
                           "try again when that is done");
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!needed_ || !recording_.connected()) return;
    try {
      recording_.ask("unlock", {"key"}, {key_});
    } catch (const std::exception&) { recording_.connection_.reset(); }
  }

 private:
  LockRecording& recording_;
  const bool needed_;
  const std::string key_ = key_of(recording_.statements_->names());
};

void LockRecording::open() {
  const auto names = names_of(options_);  // before anything is opened
  if (!connect()) return;
  table_ = named_on(*connection_, names);
  statements_.emplace(dialect_, table_.names);
}

void LockRecording::check(bool made) {
  const auto& names = statements_->names();
  const auto status = names.status();
  if (made &&
      ask("relations", {"schema", "lock", "status", "history"}, {names.schema, names.lock, status, names.history})
              .integer(0, 1) == 0)
    throw MigrationError(SchemaState::pending, fmt::format("there is no lock table {}", shown(names)),
                         hint_command("up", table_));
}

// A trigger that cannot write it would keep every grant from ending; and what is somebody else's is not dropped.
void LockRecording::check_history_table() {
  try {
    ask("recording_probe", {}, {});
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::schema) throw;
    throw MigrationError(
        SchemaState::drift,
        fmt::format("the table {} is not a history of locks: {}", statements_->names().lock_history(), failure.what()),
        "give it another name, or choose another table for the locks");
  }
}

bool LockRecording::settled(bool made) {
  parts_ = recording_parts(*connection_, *statements_);
  return made ? parts_.complete : !parts_.any();
}

std::string LockRecording::told(bool made, bool changed) const {
  const auto& names = statements_->names();
  const auto table = shown(names);
  if (!changed) return fmt::format("the table {} {}", table, made ? "has its history already" : "has no history");
  if (!made) return fmt::format("the table {} has no history any more", table);
  return fmt::format(
      "the table {} has a history now, {}{}", table, names.lock_history(),
      statements_->has("recording_grants") ? "; dlock-migrate grants prints what roles need that read or cut it" : "");
}

bool LockRecording::replace(bool made) {
  const Turn turn(*this);
  if (settled(made)) return false;
  bool theirs = false;
  try {
    if (parts_.table) check_history_table();
  } catch (const MigrationError&) {
    if (made || parts_.drops.empty()) throw;
    theirs = true;  // what writes into it goes, and the table stays
  }
  in_transaction([&](const Send& send, std::string& undo) {
    if (made) send(statements_->text("recording_table"));
    // From here on it is not said to be complete until it is.
    if (parts_.table && !theirs && statements_->has("recording_undone")) send(statements_->text("recording_undone"));
    if (made && !parts_.drops.empty() && statements_->has("recording_hold")) {
      send(statements_->text("recording_hold"));
      undo = statements_->text("recording_let_go");
    }
    for (const auto& drop : parts_.drops) send(drop);
    if (made)
      for (const auto& trigger : statements_->triggers()) send(trigger);
    else if (parts_.table && !theirs) send(statements_->text("recording_drop"));
  });
  if (made && statements_->has("recording_done"))
    connection_->script(statements_->text("recording_done"), ddl_deadline());
  return true;
}

}  // namespace dlock::migrate
