// Fills the names of a lock table into the statements that make its history.
#include "migrate/recording.hpp"

#include "dialects/mutants.hpp"
#include "migrate/migration_lock.hpp"
#include "migrate/script_recorder.hpp"
#include "types/digest.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dlock::migrate {
namespace {

constexpr std::string_view makers[] = {"recording_of_lock", "recording_of_holders", "recording_of_leaving"};

// A change of the text is another recorder.
std::string recorder_of(const dialects::Dialect& dialect, const dialects::TableNames& names) {
  return names.recorders() + sha256(std::string(dialect.recording_sql())).substr(0, 8) + "_";
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

std::string all_statements(const dialects::Dialect& dialect) {
  return fmt::format("{}\n{}", dialect.migrator_sql(), dialects::with_planted(dialect.recording_sql(), dialect.name()));
}

// The statement with one argument, which goes in as it is.
std::string inserted(const dialects::Statement& statement, std::string_view text) {
  const Argument argument = text;
  return with_literals(statement, {&argument, 1},
                       [](std::string& sql, const Argument& value) { sql += std::get<std::string_view>(value); });
}

}  // namespace

RecordingStatements::RecordingStatements(const dialects::Dialect& dialect, dialects::TableNames names)
    : dialect_(dialect),
      names_(std::move(names)),
      recorder_(recorder_of(dialect, names_)),
      statements_(all_statements(dialect), dialect.marker(), filler_of(dialect, names_, recorder_)) {}

std::vector<std::string> RecordingStatements::triggers() const {
  std::vector<std::string> result;
  for (const auto name : makers)
    if (has(name)) result.push_back(text(name));
  return result;
}

std::string RecordingStatements::needed() const {
  if (!has("recording_grants")) return {};
  auto text = inserted(at("recording_grants", {"role"}), "the role") + ";";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "; needed: " + text;
}

std::string RecordingStatements::script(bool made) const {
  ScriptRecorder recorder(dialect_);
  recorder.comment(
      made ? fmt::format("each grant of the table {} that ends leaves a row in {}", names_.lock, names_.lock_history())
           : fmt::format("the history of the table {} is forgotten, and not written any more", names_.lock));
  const auto add = [&](std::string_view name) {
    if (has(name)) recorder.script(text(name), soon());
  };
  add("begin");
  if (made) {
    add("recording_table");
    add("recording_forget");
    // A client may have to be told where a statement ends.
    for (const auto& trigger : triggers())
      recorder.script(has("recording_print") ? inserted(at("recording_print", {"statement"}), trigger) : trigger,
                      soon());
    add("recording_done");
  } else {
    add("recording_forget");
    add("recording_drop");
  }
  add("commit");
  return recorder.text();
}

}  // namespace dlock::migrate
