// This file knows how a migration looks as a script that a person can read, review and run.
#include "store/migrator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace dlock::store {
namespace {

class Script {
 public:
  Script(const dialects::Dialect& dialect, const dialects::TableNames& names, std::string_view tool_version)
      : quote_([&dialect](std::string_view identifier) { return dialect.quote(identifier); }),
        names_(names),
        statements_(dialect.migrator_sql(), names, dialects::Marker::question, quote_),
        tool_version_(tool_version) {}

  // A statement without arguments, where the dialect has it.
  void add(std::string_view name) {
    if (statements_.has(name)) append(statements_.at(name, {}).sql);
  }

  void add(const std::vector<Step>& steps) {
    for (const auto& step : steps) {
      text_ += fmt::format("\n-- {}\n", step.title);
      append(dialects::fill_in(step.sql, names_, quote_));
    }
  }

  void comment(std::string_view line) { text_ += fmt::format("\n-- {}\n", line); }

  void record_up(const Leg& leg) {
    append(filled("insert_version",
                  {"version", "name", "checksum", "steps_total", "min_client", "tool_version", "applied_by", "owner", "lease"},
                  {std::int64_t{leg.version}, leg.name, leg.checksum, static_cast<std::int64_t>(leg.up.size()),
                   leg.min_client, tool_version_, by, by, std::int64_t{0}}));
    append(filled("finish_version", {"version", "owner"}, {std::int64_t{leg.version}, by}));
  }

  void record_down(const Leg& leg) {
    append(filled("take_version", {"version", "steps_done", "steps_total", "tool_version", "applied_by", "owner", "lease"},
                  {std::int64_t{leg.version}, std::int64_t{0}, static_cast<std::int64_t>(leg.down.size()), tool_version_, by,
                   by, std::int64_t{0}}));
    append(filled("remove_version", {"version", "owner"}, {std::int64_t{leg.version}, by}));
  }

  std::string text() && { return std::move(text_); }

 private:
  static constexpr std::string_view by = "dlock-migrate sql";

  void append(std::string_view statement) {
    text_ += statement;
    text_ += statement.ends_with(';') ? "\n" : ";\n";
  }

  static std::string literal(const Argument& argument) {
    if (const auto* number = std::get_if<std::int64_t>(&argument)) return std::to_string(*number);
    // Versions, names, checksums: nothing that would need more than this on any database.
    const auto value = std::get<std::string_view>(argument);
    if (value.find_first_of("'\\") != std::string_view::npos) throw std::logic_error("a quote in a migration's name");
    return fmt::format("'{}'", value);
  }

  // The statement with its arguments as literals, each marker in the order of its use.
  std::string filled(std::string_view name, std::initializer_list<std::string_view> header,
                     std::initializer_list<Argument> arguments) const {
    const auto& statement = statements_.at(name, header);
    std::string result;
    std::size_t use = 0;
    for (const char c : statement.sql) {
      if (c == '?') result += literal(arguments.begin()[statement.markers.at(use++)]);
      else result += c;
    }
    return result;
  }

  const dialects::Quote quote_;
  const dialects::TableNames& names_;
  const dialects::Statements statements_;
  const std::string_view tool_version_;
  std::string text_;
};

}  // namespace

std::string script_of(const dialects::Dialect& dialect, const dialects::TableNames& names, int from, int to,
                      bool with_history, std::string_view tool_version) {
  const auto road = road_of(dialect);
  Script script(dialect, names, tool_version);
  script.comment(fmt::format("dlock {}, {}: from version {} to version {}", tool_version, dialect.name(), from, to));
  const auto leg = [&](int version) -> const Leg& { return road.at(static_cast<std::size_t>(version - 1)); };
  for (int version = from + 1; version <= to; ++version) {
    script.comment(fmt::format("version {}: {}", version, leg(version).name));
    script.add("begin");
    if (with_history && version == 1) script.add("create_history");
    script.add(leg(version).up);
    if (with_history) script.record_up(leg(version));
    script.add("commit");
  }
  for (int version = from; version > to; --version) {
    script.comment(fmt::format("taking back version {}: {}", version, leg(version).name));
    script.add("begin");
    script.add(leg(version).down);
    if (with_history) script.record_down(leg(version));
    if (with_history && version == 1) script.add("drop_history");
    script.add("commit");
  }
  return std::move(script).text();
}

}  // namespace dlock::store
