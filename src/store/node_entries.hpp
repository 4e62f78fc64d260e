// This file knows how processes of one node share a row: each has an entry in it, with an end of its own.
#pragma once

#include "dialects/statement.hpp"
#include "store/lock_table.hpp"
#include "types/row.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dlock::store {

// The text of a row's entries: ";<id>=<end>;<id>=<end>;", the end in microseconds since the epoch as 16 digits, by the
// database's clock. Empty: the row is no node's, and nobody enters it.
class EntrySet {
 public:
  EntrySet() = default;
  explicit EntrySet(std::string_view text);

  bool empty() const noexcept { return ends_.empty(); }
  bool has(std::string_view id) const { return ends_.find(id) != ends_.end(); }
  // Those whose end is later than `now`, and not `id`.
  EntrySet others(std::string_view id, std::int64_t now) const;
  std::string text() const;
  // Whether one more fits into the column.
  bool room() const noexcept;

  // What stands before the end of an entry in the text.
  static std::string mark(std::string_view id);
  // Of the key's entry; empty: it has none.
  static std::string mark_of(const LeaseKey& key);

 private:
  std::map<std::string, std::int64_t, std::less<>> ends_;
};

// Threads: any. Nothing is kept here: a row is read and then written only if its entries are still the ones read, so
// that whoever comes between makes it read again. Every call may be repeated, since an entry has a name.
class NodeEntries {
 public:
  // Runs a statement and hands its answer to `read`.
  using Read = std::function<void(const Answer&)>;
  using Run = std::function<void(const dialects::Statement&, std::span<const Argument>, Deadline, const Read& read)>;

  // Is shown the answer of every statement that frees a row.
  using Freed = std::function<void(const Answer&)>;

  NodeEntries(const dialects::Statements& all, Run run, Freed freed);

  Entered enter(const AcquireRequest& ask, const LockTable::Replaces& replaces, Deadline deadline) const;
  Left leave(std::string_view name, std::string_view entry, Deadline deadline) const;
  // The entry, and with it the row, lives `lease` from now. Lost: it is not there any more.
  Renewed renew(const LeaseKey& key, Duration lease, Duration at_least, Deadline deadline) const;

 private:
  struct Row;
  std::optional<Row> read(std::string_view name, Deadline deadline) const;
  bool changed(const dialects::Statement& statement, std::initializer_list<Argument> arguments,
               Deadline deadline) const;

  const dialects::Statement &entries_, &add_entry_, &replace_, &drop_entry_, &drop_last_entry_, &renew_entry_;
  const Run run_;
  const Freed freed_;
};

}  // namespace dlock::store
