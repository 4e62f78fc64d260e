// The words for a lock's state: the columns and fields of list, inspect and history, and what is said of a lock that is
// busy.
#include "show.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

namespace dlock::tools {
namespace {

bool has_holder(const Holder& row) { return !row.owner.empty(); }

// Its owner is nobody's who holds it.
bool held_by_several(const Holder& row) { return row.mode != Mode::exclusive; }

}  // namespace

std::string who(const Holder& row) {
  if (!has_holder(row)) return "-";
  const auto& name = row.label.empty() ? row.node : row.label;
  if (!held_by_several(row)) return fmt::format("{}-{}", name, row.owner.substr(0, 4));
  return row.entries > 1 ? fmt::format("{} and {} more", name, row.entries - 1) : name;
}

namespace {

// 2026-11-21 03:46:00 UTC, of the database's clock.
std::string moment(std::chrono::sys_time<Duration> time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

// Of a last run, or an entry of a history.
template <class Run>
std::string outcome(const Run& last) {
  const auto word = std::string(to_string(last.outcome));
  return last.reason.empty() ? word : fmt::format("{}: {}", word, last.reason);
}

std::string who(const LastRun& last) { return last.label.empty() ? last.node : last.label; }

std::string last_run(const LastRun& last) {
  return fmt::format("last run:  {} ({}), {}\nbegun:     {}\nended:     {}, after {}\n", printable(who(last)),
                     printable(last.node), printable(outcome(last)), moment(last.begun), moment(last.ended),
                     shown(last.ended - last.begun));
}

// Of a name that is held as permits.
std::string permits(const Holder& row) { return fmt::format("{} of {}", row.permits, row.limit); }

// One column more, where there is something to be said in it.
void add_permits(const std::vector<Holder>& rows, std::vector<std::vector<std::string>>& lines) {
  if (std::none_of(rows.begin(), rows.end(), [](const Holder& row) { return row.limit > 0; })) return;
  lines.front().emplace_back("PERMITS");
  for (std::size_t i = 0; i < rows.size(); ++i) lines[i + 1].push_back(rows[i].limit > 0 ? permits(rows[i]) : "-");
}

// Three columns more, likewise.
void add_last_runs(const std::vector<Holder>& rows, std::vector<std::vector<std::string>>& lines) {
  if (std::none_of(rows.begin(), rows.end(), [](const Holder& row) { return row.last_run.has_value(); })) return;
  for (const char* title : {"LAST", "ENDED", "OUTCOME"}) lines.front().emplace_back(title);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& last = rows[i].last_run;
    lines[i + 1].push_back(last ? printable(who(*last)) : "-");
    lines[i + 1].push_back(last ? moment(last->ended) : "-");
    lines[i + 1].push_back(last ? printable(outcome(*last)) : "-");
  }
}

Json as_json(const std::optional<LastRun>& last) {
  if (!last) return {};
  return Json::object({{"node", last->node},
                       {"label", last->label},
                       {"begun_us", last->begun.time_since_epoch().count()},
                       {"ended_us", last->ended.time_since_epoch().count()},
                       {"outcome", to_string(last->outcome)},
                       {"reason", last->reason}});
}

// Also of a lease that has no end.
std::string length(const Holder& row, Duration time) {
  return row.lease >= until_released && has_holder(row) ? "until released" : shown(time);
}

// Letters as a terminal counts them: continuation bytes of UTF-8 take no room.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string in_columns(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      text += line[i] + std::string(widths[i] - width(line[i]) + 2, ' ');
    text += line.back() + "\n";
  }
  text.pop_back();
  return text;
}

}  // namespace

std::string left(const Holder& row) { return row.state == State::free ? "-" : length(row, row.left); }

std::string as_table(const std::vector<Holder>& rows) {
  std::vector<std::vector<std::string>> lines{{"NAME", "OWNER", "TOKEN", "HELD", "LEFT", "STATE", "WAITERS"}};
  for (const auto& row : rows)
    lines.push_back({printable(row.name), printable(who(row)), std::to_string(number(row.token)),
                     has_holder(row) ? shown(row.held) : "-", left(row), std::string(to_string(row.state)),
                     std::to_string(row.waiters)});
  add_permits(rows, lines);
  add_last_runs(rows, lines);
  return in_columns(lines);
}

std::string as_table(const std::vector<HistoryEntry>& entries) {
  std::vector<std::vector<std::string>> lines{{"BEGUN", "ENDED", "HELD", "TOKEN", "MODE", "WHO", "OUTCOME"}};
  for (const auto& entry : entries) {
    const auto& name = entry.label.empty() ? entry.node : entry.label;
    lines.push_back({moment(entry.begun), moment(entry.ended), shown(entry.ended - entry.begun),
                     std::to_string(number(entry.token)), std::string(to_string(entry.mode)),
                     name.empty() ? "-" : printable(name), printable(outcome(entry))});
  }
  return in_columns(lines);
}

std::string as_lines(const Holder& row) {
  std::string text = fmt::format("name:      {}\nstate:     {}\ntoken:     {}\n", printable(row.name),
                                 to_string(row.state), number(row.token));
  if (has_holder(row))
    text += fmt::format("node:      {}\nlabel:     {}\n{}held for:  {}\nlease:     {}\nleft:      {}\nentries:   {}\n",
                        printable(row.node), printable(row.label),
                        held_by_several(row) ? fmt::format("mode:      {}\n", to_string(row.mode))
                                             : fmt::format("owner:     {}\n", row.owner),
                        shown(row.held), length(row, row.lease), left(row), row.entries);
  else if (row.state == State::closed) text += fmt::format("opens in:  {}\n", shown(row.left));
  if (row.limit > 0) text += fmt::format("permits:   {}\n", permits(row));
  if (row.passed_on) text += "passed on: in its process, under tokens up to this one\n";
  if (row.last_run) text += last_run(*row.last_run);
  if (row.waiters > 0) text += fmt::format("waiters:   {}\n", row.waiters);
  if (!row.metadata.empty()) text += fmt::format("metadata:  {}\n", printable(row.metadata));
  if (!row.kept.empty()) text += fmt::format("kept:      {}\n", printable(row.kept));
  text.pop_back();
  return text;
}

Json as_json(const Holder& row) {
  return Json::object({{"name", row.name},
                       {"state", to_string(row.state)},
                       {"mode", to_string(row.mode)},
                       {"node", row.node},
                       {"owner", row.owner},
                       {"label", row.label},
                       {"token", number(row.token)},
                       {"held_us", has_holder(row) ? row.held.count() : 0},
                       {"left_us", row.left.count()},
                       {"passed_on", row.passed_on},
                       {"until_released", has_holder(row) && row.lease >= until_released},
                       {"entries", row.entries},
                       {"permits", row.permits},
                       {"limit", row.limit},
                       {"waiters", row.waiters},
                       {"metadata", row.metadata},
                       {"kept", row.kept},
                       {"last_run", as_json(row.last_run)}});
}

Json as_json(const HistoryEntry& entry) {
  return Json::object({{"token", number(entry.token)},
                       {"mode", to_string(entry.mode)},
                       {"owner", entry.owner},
                       {"node", entry.node},
                       {"label", entry.label},
                       {"begun_us", entry.begun.time_since_epoch().count()},
                       {"ended_us", entry.ended.time_since_epoch().count()},
                       {"outcome", to_string(entry.outcome)},
                       {"reason", entry.reason}});
}

std::string why_busy(const Holder& row) {
  const auto name = in_quotes(row.name);
  if (row.state == State::closed)
    return fmt::format("{} is closed for another {} (at-least time of token {})", name, shown(row.left),
                       number(row.token));
  if (row.state == State::locked)
    return fmt::format("{} is locked by another transaction, and nobody is seen to hold it", name);
  if (!has_holder(row)) return fmt::format("{} was busy a moment ago, and is free by now", name);
  if (row.state == State::held && row.lease >= until_released)
    return fmt::format("{} is held by {} (token {}) for {}, until it is released", name, printable(who(row)),
                       number(row.token), shown(row.held));
  return fmt::format(
      "{} is held by {} (token {}) for {}; lease {}", name, printable(who(row)), number(row.token), shown(row.held),
      row.state == State::held ? fmt::format("ends in {} unless renewed", shown(row.left)) : "has ended");
}

int say_busy(const std::string& text, Console& console) {
  if (console.json()) return console.error(Exit::busy, text);
  console.note(text);
  return number(Exit::busy);
}

void say_busy(const Holder& row, Console& console) { static_cast<void>(say_busy(why_busy(row), console)); }

int say_no(const std::string& text, Console& console) {
  if (console.json()) return console.error(Exit::no, text);
  console.note(text);
  return number(Exit::no);
}

}  // namespace dlock::tools
