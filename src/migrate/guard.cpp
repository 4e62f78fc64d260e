// Which column can have a guard, and what is said of one that cannot; what the guard is called, when it is as it should
// be, and what is sent to make it or take it away. How often and how long: trigger_change.cpp.
#include "migrate/guard.hpp"

#include "migrate/script_recorder.hpp"
#include "types/digest.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <utf8.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace dlock::migrate {
namespace {

struct Column {
  std::string name, type;
  bool fits, generated;
};

struct Table {
  std::string name, kind;  // an empty kind: a table
  std::vector<Column> columns;
};

std::string list_of(const std::vector<Column>& columns) {
  std::string result;
  for (const auto& column : columns) result += (result.empty() ? "" : ", ") + column.name;
  return result;
}

// The tables of that name, whatever their letters' case where the database does not tell them apart.
std::vector<Table> tables_in(const Answer& answer) {
  std::vector<Table> tables;
  for (std::size_t row = 0; row < answer.rows(); ++row) {
    if (tables.empty() || tables.back().name != answer.text(row, 0))
      tables.push_back({answer.text(row, 0), answer.text(row, 1), {}});
    if (const auto& name = answer.text(row, 2); !name.empty())
      tables.back().columns.push_back(
          {name, answer.text(row, 3), answer.integer(row, 4) != 0, answer.integer(row, 5) != 0});
  }
  return tables;
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return small(x) == small(y); });
}

[[noreturn]] void refuse(const std::string& text) { throw Error(Fault::misuse, text); }

const Table& table_named(const std::vector<Table>& tables, const GuardedColumn& wanted) {
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const Table& table) { return table.name == wanted.table; });
  if (found != tables.end()) return *found;
  refuse(fmt::format("there is no table {} in the schema {}{}", in_quotes(wanted.table), in_quotes(wanted.schema),
                     tables.empty() ? ", or this role may not see it"
                                    : "; it is spelled " + in_quotes(tables.front().name) + " there"));
}

void check_column(const Table& table, const std::string& wanted) {
  const auto shown = in_quotes(table.name);
  if (!table.kind.empty())
    refuse(fmt::format("{} is {}; a guard belongs to the table in which the rows are", shown, table.kind));
  const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                  [&](const Column& column) { return column.name == wanted; });
  if (found == table.columns.end()) {
    const auto other = std::find_if(table.columns.begin(), table.columns.end(),
                                    [&](const Column& column) { return same_letters(column.name, wanted); });
    refuse(fmt::format("the table {} has no column {}; {}", shown, in_quotes(wanted),
                       other == table.columns.end() ? "it has " + list_of(table.columns)
                                                    : "it is spelled " + in_quotes(other->name) + " there"));
  }
  if (!found->fits)
    refuse(fmt::format("the column {} of {} is of type {}; a fencing token needs a 64-bit integer", in_quotes(wanted),
                       shown, found->type.empty() ? "none" : found->type));
  if (found->generated)
    refuse(fmt::format("the column {} of {} is made by an expression; a fencing token is written by its holder",
                       in_quotes(wanted), shown));
}

constexpr std::size_t most_bytes = 1020;

void check_part(const dialects::Dialect& dialect, std::string_view what, const std::string& text) {
  if (text.empty())
    throw Error(Fault::misuse, fmt::format("{} \"\" is empty; name it as the database spells it", what));
  check_text(what, text, most_bytes);
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), control))
    throw Error(Fault::misuse, fmt::format("{} {} contains a control character", what, in_quotes(text)));
  const auto limit = dialect.traits().identifier_limit;
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

std::string name_of(const GuardedColumn& column) {
  return "dlock_guard_" + sha256(column.table + "\n" + column.column).substr(0, 16);
}

}  // namespace

GuardStatements::GuardStatements(const dialects::Dialect& dialect, GuardedColumn column)
    : TriggerStatements(dialect, dialect.texts().guard_sql, "guard", filler_of(dialect, column, name_of(column))),
      column_(checked(dialect, std::move(column))),
      name_(name_of(column_)),
      make_(readable(dialect, at("guard_make", {"table"}), std::initializer_list<Argument>{column_.table})) {}

std::string GuardStatements::script(bool made) const {
  if (!made)
    return written(fmt::format("fencing tokens in {} are not looked at any more", shown()), {text("guard_drop")});
  return written(fmt::format("a write to {} is refused if its fencing token is smaller than {} in the row",
                             column_.table, column_.column),
                 {text_if_any("guard_hold"), text("guard_drop"), printed(make_), text_if_any("guard_let_go")});
}

TableGuard::TableGuard(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                       GuardedColumn column, schema::Options options)
    : TriggerChange(dialect, std::move(connector), std::move(options)), column_(std::move(column)) {}

void TableGuard::open() {
  if (!connected()) static_cast<void>(GuardStatements(dialect_, column_));  // a wrong name is told without a database
  if (!connect()) return;
  if (column_.schema.empty()) column_.schema = connection_->default_schema(soon());
  if (column_.schema.empty())
    refuse("no schema is selected on this connection; name a database in the URL, or the table with its schema");
  statements_.emplace(dialect_, column_);
}

void TableGuard::check(bool made) {
  const auto tables = tables_in(ask("guard_columns", {"schema", "table"}, {column_.schema, column_.table}));
  const auto& table = table_named(tables, column_);
  if (made && !planted("guard_unchecked")) check_column(table, column_.column);
}

bool TableGuard::settled(bool made) {
  const auto found = ask("guard_state", {"schema", "table", "column", "guard", "text"},
                         {column_.schema, column_.table, column_.column, statements_->name(), statements_->make()})
                         .integer(0, 0);
  state_ = found == 0 ? State::absent : found == 1 ? State::as_made : State::different;
  return state_ == (made ? State::as_made : State::absent) && !planted("guard_made_again");
}

std::string TableGuard::told(bool made, bool changed) const {
  const auto done = made ? "is guarded" : "is not guarded any more";
  return fmt::format("{} {}", statements_->shown(), changed ? done : made ? "is guarded already" : "has no guard");
}

std::string TableGuard::gap(bool looked) const {
  if (!replacing_ || statements_->has("commit")) return {};  // the old one came back with the rest
  if (!looked) return fmt::format("; {} may have no guard now", statements_->shown());
  return state_ == State::absent ? fmt::format("; {} has no guard now", statements_->shown()) : "";
}

bool TableGuard::replace(bool made) {
  replacing_ = replacing_ || (made && state_ == State::different);
  in_transaction([&](const Send& send, std::string& undo) {
    if (made && state_ == State::different && statements_->has("guard_hold")) {
      send(statements_->text("guard_hold"));
      undo = statements_->text("guard_let_go");
    }
    if (state_ != State::absent) send(statements_->text("guard_drop"));
    if (made) send(statements_->make());
  });
  return true;
}

}  // namespace dlock::migrate
