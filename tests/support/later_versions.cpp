// Makes later versions of the table from the text of version 1, and puts them in front of the built-in dialects.
#include "support/later_versions.hpp"

#include "dialects/dialect.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::dialects {

// The linker's --wrap: whoever calls all() gets the first, and the second is the one that the build has made.
std::span<const Dialect* const> all_or_later() asm("__wrap__ZN5dlock8dialects3allEv");
std::span<const Dialect* const> all_built_in() asm("__real__ZN5dlock8dialects3allEv");

}  // namespace dlock::dialects

namespace dlock::test {
namespace {

using dialects::Dialect;

constinit std::atomic<int> alive{0};

std::size_t place_of(std::string_view text, std::string_view word, std::size_t from = 0) {
  const auto at = text.find(word, from);
  if (at == std::string_view::npos) throw std::logic_error("version 1 has no " + std::string(word));
  return at;
}

std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const auto begin = place_of(text, before) + before.size();
  return std::string(text.substr(begin, place_of(text, after, begin) - begin));
}

// The statement, from the beginning of its line.
std::string view_in(std::string_view text) {
  const auto at = place_of(text, "VIEW {{status}} AS");
  const auto begin = text.rfind('\n', at) + 1;
  return std::string(text.substr(begin, place_of(text, ";", at) + 1 - begin));
}

// A step, and where statements commit by themselves, the question whether it is done.
class Steps {
 public:
  Steps(std::string title, bool probed)
      : text_("-- " + std::move(title) + "\n-- min_client: 0.1.0\n"), probed_(probed) {}

  void add(const std::string& title, const std::string& sql, const std::string& probe) {
    text_ += "\n-- step: " + title + "\n" + sql + "\n";
    if (probed_) text_ += "-- probe: it is done\n" + probe + ";\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool probed_;
};

std::string columns_where(const std::string& answer, const std::string& condition) {
  return "SELECT " + answer + " FROM information_schema.columns WHERE table_schema = :schema AND " + condition;
}

std::string column_is_there(const std::string& column) {
  return columns_where("count(*)", "table_name = :lock AND column_name = '" + column + "'");
}

std::string column_is_gone(const std::string& column) {
  return columns_where("CASE count(*) WHEN 0 THEN 1 ELSE 0 END",
                       "table_name = :lock AND column_name = '" + column + "'");
}

// The texts of the later versions of one dialect.
struct AddedVersions {
  AddedVersions(const dialects::Migration& first, bool transactional) : all_at_once(transactional) {
    type = between(first.up, "next_ticket ", " NOT NULL");
    first_view = second_view = view_in(first.up);
    const std::string_view last = "l.kept";
    second_view.insert(place_of(second_view, std::string(last) + "\n") + last.size(), ", l.added");
    const auto line = between(first.structure, "lock.next_ticket: ", "\n");
    second_structure =
        std::string(first.structure) + "lock.added: " + line + "\nlock.more: " + line + "\nstatus.added: column\n";
    third_structure = second_structure + "lock.third: " + line + "\n";
    second();
    third();
  }

  void add_column(Steps& steps, const std::string& name) const {
    steps.add("add the column " + name, "ALTER TABLE {{lock}} ADD COLUMN " + name + " " + type + " NOT NULL DEFAULT 0;",
              column_is_there(name));
  }
  void drop_column(Steps& steps, const std::string& name) const {
    steps.add("drop the column " + name, "ALTER TABLE {{lock}} DROP COLUMN " + name + ";", column_is_gone(name));
  }
  static void drop_view(Steps& steps) { steps.add("drop the view for people", "DROP VIEW {{status}};", {}); }
  static void make_view(Steps& steps, const std::string& view) { steps.add("create the view for people", view, {}); }
  static void replace_view(Steps& steps, const std::string& view, const std::string& probe) {
    steps.add("create the view for people", "CREATE OR REPLACE" + view.substr(std::string_view("CREATE").size()),
              columns_where(probe, "table_name = :status"));
  }

  void second() {
    Steps up("Version 2, of a test.", !all_at_once), down("Version 2 is taken back.", !all_at_once);
    add_column(up, "added");
    add_column(up, "more");
    if (all_at_once) {
      drop_view(up);
      make_view(up, second_view);
      drop_view(down);  // it knows all columns that were there when it was made
    } else {
      replace_view(up, second_view, "COALESCE(MAX(column_name = 'added'), 0)");
      replace_view(down, first_view, "CASE WHEN count(*) > 0 AND MAX(column_name = 'added') = 0 THEN 1 ELSE 0 END");
    }
    drop_column(down, "more");
    drop_column(down, "added");
    if (all_at_once) make_view(down, first_view);
    second_up = up.text();
    second_down = down.text();
  }

  void third() {
    Steps up("Version 3, of a test.", !all_at_once), down("Version 3 is taken back.", !all_at_once);
    add_column(up, "third");
    if (all_at_once) drop_view(down);
    drop_column(down, "third");
    if (all_at_once) make_view(down, second_view);
    third_up = up.text();
    third_down = down.text();
  }

  bool all_at_once;  // a version is one transaction
  std::string type, first_view, second_view;
  std::string second_up, second_down, second_structure, third_up, third_down, third_structure;
};

// What a later dialect has of its own: it outlives the part that is a dialect.
struct LaterTexts {
  explicit LaterTexts(const Dialect& base)
      : added(base.texts().migrations.front(),
              base.texts().migrator_sql.find("-- name: begin()") != std::string_view::npos),
        all(base.texts()) {
    if (all.migrations.size() != 1) throw std::logic_error("there is a version 2: begin these behind it");
    migrations = {all.migrations.front(),
                  {2, "add_columns", added.second_up, added.second_down, added.second_structure},
                  {3, "add_third", added.third_up, added.third_down, added.third_structure}};
    all.migrations = migrations;
  }

  const AddedVersions added;
  std::vector<dialects::Migration> migrations;
  dialects::Texts all;
};

class LaterDialect final : private LaterTexts, public Dialect {
 public:
  explicit LaterDialect(const Dialect& base) : LaterTexts(base), Dialect(base.traits(), all), base_(base) {}

  std::unique_ptr<dialects::Connector> connector(const Url& url,
                                                 const dialects::ConnectOptions& options) const override {
    return base_.connector(url, options);
  }
  std::unique_ptr<dialects::CallerConnection> caller_connection(const TransactionRef& transaction,
                                                                const dialects::QuotedTable& table) const override {
    return base_.caller_connection(transaction, table);
  }
  void append_literal(std::string& sql, const Argument& argument) const override {
    base_.append_literal(sql, argument);
  }
  std::string grantee(std::string_view role) const override { return base_.grantee(role); }

 private:
  const Dialect& base_;
};

std::span<const Dialect* const> later_dialects() {
  static const auto made = [] {
    std::vector<std::unique_ptr<const Dialect>> all;
    for (const auto* dialect : dialects::all_built_in()) all.push_back(std::make_unique<LaterDialect>(*dialect));
    return all;
  }();
  static const auto seen = [] {
    std::vector<const Dialect*> all;
    for (const auto& dialect : made) all.push_back(dialect.get());
    return all;
  }();
  return seen;
}

}  // namespace

LaterVersions::LaterVersions() noexcept { ++alive; }
LaterVersions::~LaterVersions() { --alive; }
bool LaterVersions::known() noexcept { return alive > 0; }

}  // namespace dlock::test

std::span<const dlock::dialects::Dialect* const> dlock::dialects::all_or_later() {
  return test::LaterVersions::known() ? test::later_dialects() : all_built_in();
}
