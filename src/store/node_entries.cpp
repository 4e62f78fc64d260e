// This file knows the way into a row of one's own node, and out of it.
#include "store/node_entries.hpp"

#include "store/renewals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace dlock::store {
namespace {

// Of the column where it has a limit; the same everywhere, so that an application finds it on the first database.
constexpr std::size_t longest_text = 4096;
constexpr std::size_t longest_entry = 32 + 1 + 16 + 1;

std::optional<std::int64_t> number_in(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

EntrySet::EntrySet(std::string_view text) {
  while (!text.empty()) {
    const auto piece = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    const auto equals = piece.find('=');
    if (equals == std::string_view::npos) continue;
    if (const auto end = number_in(piece.substr(equals + 1))) ends_.emplace(piece.substr(0, equals), *end);
  }
}

EntrySet EntrySet::others(std::string_view id, std::int64_t now) const {
  EntrySet rest;
  for (const auto& [other, end] : ends_)
    if (other != id && end > now) rest.ends_.emplace(other, end);
  return rest;
}

std::string EntrySet::text() const {
  std::string text;
  for (const auto& [id, end] : ends_) text += fmt::format(";{}={:016}", id, end);
  if (!text.empty()) text += ';';
  return text;
}

bool EntrySet::room() const noexcept { return 1 + (ends_.size() + 1) * longest_entry <= longest_text; }

std::string EntrySet::mark(std::string_view id) { return fmt::format(";{}=", id); }

std::string EntrySet::mark_of(const LeaseKey& key) { return key.entry.empty() ? std::string{} : mark(key.entry); }

struct NodeEntries::Row {
  std::string owner, node, text;
  std::int64_t token = 0, floor = 0, now = 0;
  bool live = false;
};

NodeEntries::NodeEntries(const dialects::Statements& all, Run run, Freed freed)
    : entries_(all.at("entries", {"name"})),
      add_entry_(all.at("add_entry", {"name", "owner", "token", "seen", "before", "lease"})),
      replace_(all.at("replace", {"name", "owner", "token", "seen", "new_owner", "new_token", "label", "actor", "mark",
                                  "lease", "at_least", "meta"})),
      drop_entry_(all.at("drop_entry", {"name", "owner", "token", "seen", "others"})),
      drop_last_entry_(all.at("drop_last_entry", {"name", "owner", "token", "seen"})),
      renew_entry_(all.at("renew_entry", {"name", "owner", "token", "mark", "lease", "at_least"})),
      run_(std::move(run)),
      freed_(std::move(freed)) {}

std::optional<NodeEntries::Row> NodeEntries::read(std::string_view name, Deadline deadline) const {
  std::optional<Row> row;
  const Argument argument = name;
  run_(entries_, {&argument, 1}, deadline, [&](const Answer& answer) {
    if (answer.rows() == 0) return;
    row.emplace(Row{answer.text(0, 0), answer.text(0, 1), answer.text(0, 2), answer.integer(0, 3), answer.integer(0, 4),
                    answer.integer(0, 5), answer.integer(0, 6) != 0});
  });
  return row;
}

bool NodeEntries::changed(const dialects::Statement& statement, std::initializer_list<Argument> arguments,
                          Deadline deadline) const {
  bool changed = false;
  run_(statement, {arguments.begin(), arguments.size()}, deadline, [&](const Answer& answer) {
    changed = answer.affected > 0;
    if (&statement == &drop_last_entry_) freed_(answer);
  });
  return changed;
}

Entered NodeEntries::enter(const AcquireRequest& ask, const LockTable::Replaces& replaces, Deadline deadline) const {
  const std::string_view name = ask.name.text();
  const auto mark = EntrySet::mark(ask.entry);
  for (;;) {
    const auto row = read(name, deadline);
    if (!row || !row->live || row->node != ask.node || !row->text.starts_with(';')) return {};
    const std::string_view owner = row->owner, seen = row->text;
    if (row->owner != ask.owner && replaces(owner)) {
      const auto token = std::max(row->token, row->floor) + 1;
      if (changed(replace_,
                  {name, owner, row->token, seen, ask.owner, token, ask.label, ask.actor, std::string_view{mark},
                   ask.lease.count(), ask.at_least.count(), ask.metadata},
                  deadline))
        return {Token{token}, std::string(ask.owner), false};
      continue;
    }
    const auto others = EntrySet(seen).others(ask.entry, row->now);
    if (!others.room()) return {};
    const auto text = others.text();
    const auto before = (text.empty() ? text : text.substr(0, text.size() - 1)) + mark;
    if (changed(add_entry_, {name, owner, row->token, seen, std::string_view{before}, ask.lease.count()}, deadline))
      return {Token{row->token}, row->owner, false};
  }
}

Left NodeEntries::leave(std::string_view name, std::string_view entry, Deadline deadline) const {
  for (;;) {
    const auto row = read(name, deadline);
    if (!row) return {};
    const std::string_view owner = row->owner, seen = row->text;
    const EntrySet entries(seen);
    if (!entries.has(entry)) return {false, row->owner};
    const auto others = entries.others(entry, row->now).text();
    const bool left = others.empty()
                          ? changed(drop_last_entry_, {name, owner, row->token, seen}, deadline)
                          : changed(drop_entry_, {name, owner, row->token, seen, std::string_view{others}}, deadline);
    if (left) return {true, others.empty() ? std::string{} : row->owner};
  }
}

Renewed NodeEntries::renew(const LeaseKey& key, Duration lease, Duration at_least, Deadline deadline) const {
  const auto mark = EntrySet::mark(key.entry);
  const std::array<Argument, 6> arguments{key.name,      key.owner,       number(key.token), std::string_view{mark},
                                          lease.count(), at_least.count()};
  auto renewed = Renewed::lost;
  run_(renew_entry_, arguments, deadline, [&](const Answer& answer) { renewed = renewed_one(answer); });
  return renewed;
}

}  // namespace dlock::store
