// Fills the names of a table and its column into the statements that guard it.
#include "migrate/guard.hpp"

#include "dialects/mutants.hpp"
#include "migrate/migration_lock.hpp"
#include "migrate/script_recorder.hpp"
#include "types/digest.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <utf8.h>

#include <algorithm>
#include <utility>

namespace dlock::migrate {
namespace {

constexpr std::size_t most_bytes = 1020;

void check_part(const dialects::Dialect& dialect, std::string_view what, const std::string& text) {
  if (text.empty())
    throw Error(Fault::misuse, fmt::format("{} \"\" is empty; name it as the database spells it", what));
  check_text(what, text, most_bytes);
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), control))
    throw Error(Fault::misuse, fmt::format("{} {} contains a control character", what, in_quotes(text)));
  const auto limit = dialect.identifier_limit();
  const auto characters = static_cast<std::size_t>(utf8::distance(text.begin(), text.end()));
  if (characters > limit.characters || text.size() > limit.bytes)
    throw Error(Fault::misuse,
                fmt::format("{} {} has {} characters in {} bytes; a name in {} has at most {} in {}", what,
                            in_quotes(text), characters, text.size(), dialect.name(), limit.characters, limit.bytes));
}

GuardedColumn checked(const dialects::Dialect& dialect, GuardedColumn column) {
  if (!column.schema.empty()) check_part(dialect, "the schema", column.schema);
  check_part(dialect, "the table", column.table);
  check_part(dialect, "the column", column.column);
  return column;
}

// SQLite's RAISE takes a text; a name in its place is an expression to newer ones.
std::string raised(std::string_view text) {
  std::string literal = "'";
  for (const char c : text) literal.append(c == '\'' ? 2 : 1, c);
  return literal + "'";
}

dialects::WordFiller filler_of(const dialects::Dialect& dialect, const GuardedColumn& column, const std::string& name) {
  const auto quote = [&dialect](std::string_view identifier) { return dialect.quote(identifier); };
  dialects::TableNames names;
  names.schema = column.schema;
  return [=, tables = dialects::filler_of(names, quote)](std::string_view word) {
    const auto qualified = [&](std::string_view text) {
      return column.schema.empty() ? quote(text) : quote(column.schema) + "." + quote(text);
    };
    if (word == "guarded") return qualified(column.table);
    if (word == "table_name") return quote(column.table);
    if (word == "column") return quote(column.column);
    if (word == "guard") return qualified(name);
    if (word == "trigger") return quote(name);
    if (word == "refusal") return raised("stale fencing token for table " + column.table);
    if (word == "no_token") return raised("not a fencing token for table " + column.table);
    return tables(word);
  };
}

std::string all_statements(const dialects::Dialect& dialect) {
  return fmt::format("{}\n{}", dialect.migrator_sql(), dialects::with_planted(dialect.guard_sql(), dialect.name()));
}

bool plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '\'' && c != '\\'; });
}

// The statement with one argument, as anybody would write it where that means the same in every session.
std::string filled(const dialects::Dialect& dialect, const dialects::Statement& statement, std::string_view text) {
  const Argument argument = text;
  return with_literals(statement, {&argument, 1}, [&dialect](std::string& sql, const Argument& value) {
    const auto& word = std::get<std::string_view>(value);
    if (plain(word)) sql.append(1, '\'').append(word).append(1, '\'');
    else dialect.append_literal(sql, value);
  });
}

// The statement with one argument, which goes in as it is.
std::string inserted(const dialects::Statement& statement, std::string_view text) {
  const Argument argument = text;
  return with_literals(statement, {&argument, 1},
                       [](std::string& sql, const Argument& value) { sql += std::get<std::string_view>(value); });
}

}  // namespace

GuardStatements::GuardStatements(const dialects::Dialect& dialect, GuardedColumn column)
    : dialect_(dialect),
      column_(checked(dialect, std::move(column))),
      name_("dlock_guard_" + sha256(column_.table + "\n" + column_.column).substr(0, 16)),
      statements_(all_statements(dialect), dialect.marker(), filler_of(dialect, column_, name_)),
      make_(filled(dialect, at("guard_make", {"table"}), column_.table)) {}

std::string GuardStatements::needed() const {
  if (!has("guard_grants")) return {};
  auto text = inserted(at("guard_grants", {"role"}), "the role") + ";";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "; needed: " + text;
}

std::string GuardStatements::script(bool made) const {
  ScriptRecorder recorder(dialect_);
  recorder.comment(made ? fmt::format("a write to {} is refused if its fencing token is smaller than {} in the row",
                                      column_.table, column_.column)
                        : fmt::format("fencing tokens in {} are not looked at any more", shown()));
  const auto add = [&](std::string_view name) {
    if (has(name)) recorder.script(text(name), soon());
  };
  add("begin");
  if (made) add("guard_hold");
  add("guard_drop");
  // A client may have to be told where a statement ends.
  if (made) recorder.script(has("guard_print") ? inserted(at("guard_print", {"statement"}), make_) : make_, soon());
  if (made) add("guard_let_go");
  add("commit");
  return recorder.text();
}

}  // namespace dlock::migrate
