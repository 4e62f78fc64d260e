// How the named statements of a dialect's .sql file become statements that can be sent.
//
// Form of a file:
//
//   -- name: release(name, owner, token)
//   -- Any further comment lines, for people.
//   UPDATE {{lock}} SET owner = NULL … WHERE name = :name AND owner = :owner AND token = :token;
//
// After the list the header may carry "-> words", hints that only the dialect itself understands.
// A statement goes from its header to the next one; a final ';' is cut. Arguments are written :name, outside of quotes
// and comments (:: is a cast, not an argument), and each must be in the header's list. What is filled in are
// the names of tables, fully qualified and quoted: {{lock}}, {{status}}, {{history}}, {{waiter}}, {{holder}},
// {{lock_history}}, and {{schema}}; {{channel}}, TableNames::channel() as it is; and what the same text says under a
// header of its own, in which there may be all of that:
//
//   -- fragment: now
//   (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
#pragma once

#include "types/row.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::dialects {

// The names in use, plain. All but `schema` are valid identifiers; `schema` is whatever the database says it is.
struct TableNames {
  std::string schema;
  std::string lock = "resource_lock";
  std::string history = "resource_lock_schema_history";
  std::string status() const { return lock + "_status"; }
  std::string waiter() const { return lock + "_waiter"; }
  std::string holder() const { return lock + "_holder"; }
  std::string lock_history() const { return lock + "_history"; }
  // What the names of everything begin with that writes the history of these locks.
  std::string recorders() const;
  // 16 hexadecimal digits that stand for the lock table where its name cannot: in channels and in names of other
  // things.
  std::string channel() const;
};

// How a database writes argument number i (counted from 0, in the order of the header).
enum class Marker {
  dollar,    // $1, $2, …: each may be used several times
  question,  // ?: one marker per use, in order of use
};

// One statement, ready to send.
struct Statement {
  std::string name;
  std::string sql;
  std::vector<std::string> arguments;  // as in the header
  Marker marker = Marker::dollar;
  std::vector<std::size_t> markers;  // for Marker::question: which argument each ? stands for
  std::string hint;                  // the words after "->" in the header, or empty
  std::uint64_t number = 0;          // that no other text has in this process; 0: it was given none

  bool hinted(std::string_view word) const noexcept;
};

using Quote = std::function<std::string(std::string_view identifier)>;

// What stands in SQL for a word in {{ }}. Throws std::logic_error for one it does not know.
using WordFiller = std::function<std::string(std::string_view word)>;

// Of the names of tables; `quote` turns a plain identifier into one that may stand in SQL.
WordFiller filler_of(TableNames names, Quote quote);

// What is filled in is not looked at again.
std::string fill_in(std::string_view sql, const WordFiller& filler);
std::string fill_in(std::string_view sql, const TableNames& names, const Quote& quote);

// The statement's text with every marker replaced by its argument, which `append` writes at the end of the text.
using AppendLiteral = std::function<void(std::string& sql, const Argument& argument)>;
std::string with_literals(const Statement& statement, std::span<const Argument> arguments, const AppendLiteral& append);

// The statements of a text of several, one after the other.
std::vector<std::string_view> pieces_of(std::string_view sql);

// The statements of one .sql file.
class Statements {
 public:
  Statements() = default;
  // Throws std::logic_error on a file that breaks the form above: a defect, found by the tests.
  Statements(std::string_view text, const TableNames& names, Marker marker, const Quote& quote)
      : Statements(text, marker, filler_of(names, quote)) {}
  Statements(std::string_view text, Marker marker, const WordFiller& filler);

  // Throws std::logic_error if there is no such statement, or if it takes other arguments.
  const Statement& at(std::string_view name, std::initializer_list<std::string_view> arguments) const;
  // Whether the file has such a statement: the migrator asks, where databases go different ways.
  bool has(std::string_view name) const noexcept;
  std::size_t size() const noexcept { return statements_.size(); }

 private:
  const Statement* find(std::string_view name) const noexcept;

  std::vector<Statement> statements_;  // in the order of their names
};

}  // namespace dlock::dialects
