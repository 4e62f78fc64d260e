// How the text of a migration is read, and how what it makes is compared with what is there.
#include "migrate/migrations.hpp"

#include "types/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>

namespace dlock::migrate {
namespace {

constexpr std::string_view step_marker = "-- step:";
constexpr std::string_view probe_marker = "-- probe:";
constexpr std::string_view client_marker = "-- min_client:";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

[[noreturn]] void defect(const dialects::Migration& migration, std::string_view what) {
  throw std::logic_error(fmt::format("migration {} {}: {}", migration.version, migration.name, what));
}

// Cuts a text at its marker lines.
std::vector<Step> steps_of(std::string_view text, const dialects::Migration& migration) {
  std::vector<Step> steps;
  std::string_view* part = nullptr;  // what the lines being read belong to
  std::size_t begin = 0;
  const auto close = [&](std::size_t end) {
    if (part != nullptr) *part = trimmed(text.substr(begin, end - begin));
    part = nullptr;
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    const auto next = std::min(end + 1, text.size());
    if (line.starts_with(step_marker)) {
      close(at);
      steps.push_back({std::string(trimmed(line.substr(step_marker.size()))), {}, {}});
      part = &steps.back().sql;
      begin = next;
    } else if (line.starts_with(probe_marker)) {
      close(at);
      if (steps.empty()) defect(migration, "a probe without a step");
      part = &steps.back().probe;
      begin = next;
    }
    at = next;
  }
  close(text.size());
  if (steps.empty()) defect(migration, "it has no step");
  for (const auto& step : steps)
    if (step.sql.empty() || step.title.empty()) defect(migration, "a step is empty");
  return steps;
}

std::string min_client_of(const dialects::Migration& migration) {
  const auto at = migration.up.find(client_marker);
  if (at == std::string_view::npos) defect(migration, "it does not say its min_client");
  const auto line = migration.up.substr(at + client_marker.size());
  return std::string(trimmed(line.substr(0, line.find('\n'))));
}

struct StructureLine {
  std::string_view part, column, what;
};

StructureLine read(std::string_view line) {
  const auto colon = std::min(line.find(": "), line.size());
  const auto subject = line.substr(0, colon);
  const auto dot = std::min(subject.find('.'), subject.size());
  return {subject.substr(0, dot), subject.substr(std::min(dot + 1, subject.size())),
          line.substr(std::min(colon + 2, line.size()))};
}

bool makes_a_part(const StructureLine& line) {
  return line.column.empty() && (line.what.starts_with("table") || line.what.starts_with("view"));
}

std::string name_of(std::string_view part, const dialects::TableNames& names) {
  if (part == "lock") return names.lock;
  if (part == "waiter") return names.waiter();
  return part == "holder" ? names.holder() : names.status();
}

std::vector<std::string> without(const std::vector<std::string>& lines, const std::vector<std::string>& others) {
  std::vector<std::string> result;
  std::set_difference(lines.begin(), lines.end(), others.begin(), others.end(), std::back_inserter(result));
  return result;
}

std::set<std::string_view> parts_of(const std::vector<std::string>& lines) {
  std::set<std::string_view> parts;
  for (const auto& line : lines) parts.insert(read(line).part);
  return parts;
}

}  // namespace

std::vector<Migration> migrations_of(const dialects::Dialect& dialect) {
  std::vector<Migration> migrations;
  for (const auto& migration : dialect.texts().migrations) {
    if (migration.version != static_cast<int>(migrations.size()) + 1) defect(migration, "versions must be 1, 2, 3, …");
    migrations.push_back({migration.version, std::string(migration.name), checksum(migration.up),
                          min_client_of(migration), steps_of(migration.up, migration),
                          steps_of(migration.down, migration), structure_of(migration.structure)});
  }
  return migrations;
}

std::string probe_name(bool up, int version, std::size_t step) {
  return fmt::format("probe_{}_{}_{}", up ? "up" : "down", version, step + 1);
}

bool newer(std::string_view a, std::string_view b) {
  const auto take = [](std::string_view& text) {
    std::uint64_t number = 0;
    while (!text.empty() && text.front() >= '0' && text.front() <= '9' && number < 1'000'000'000) {
      number = number * 10 + static_cast<std::uint64_t>(text.front() - '0');
      text.remove_prefix(1);
    }
    text.remove_prefix(
        std::min(text.find('.') + 1, text.size()));  // no dot: npos + 1 is 0, and the rest is not a number
    return number;
  };
  for (int part = 0; part < 4; ++part) {
    const auto left = take(a), right = take(b);
    if (left != right) return left > right;
  }
  return false;
}

std::vector<std::string> structure_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto line = text.substr(0, end); !line.empty() && !line.starts_with('#')) lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> differences(const std::vector<std::string>& expected, const std::vector<std::string>& found,
                                     const dialects::TableNames& names) {
  const auto expected_parts = parts_of(expected), found_parts = parts_of(found);
  const auto missing = without(expected, found), extra = without(found, expected);
  std::set<std::string_view> told;  // columns that are there, and are something else
  std::vector<std::string> result;
  for (const auto& text : missing) {
    const auto line = read(text);
    const auto name = name_of(line.part, names);
    if (!found_parts.contains(line.part)) {
      if (makes_a_part(line))
        result.push_back(fmt::format("the {} {} is missing", line.what.substr(0, line.what.find(',')), name));
    } else if (line.column.empty()) {
      result.push_back(fmt::format("{} should have, or be: {}", name, line.what));
    } else {
      const auto other = std::find_if(extra.begin(), extra.end(), [&](const std::string& candidate) {
        const auto read_candidate = read(candidate);
        return read_candidate.part == line.part && read_candidate.column == line.column;
      });
      if (other != extra.end()) told.insert(*other);
      result.push_back(fmt::format("column {}.{} should be {} and is {}", name, line.column, line.what,
                                   other != extra.end() ? read(*other).what : "absent"));
    }
  }
  for (const auto& text : extra) {
    const auto line = read(text);
    const auto name = name_of(line.part, names);
    if (!expected_parts.contains(line.part)) {
      if (makes_a_part(line) || line.what.starts_with("of kind"))
        result.push_back(fmt::format("{} ({}) should not be there", name, line.what));
    } else if (line.column.empty()) {
      result.push_back(fmt::format("{} should not have, or be: {}", name, line.what));
    } else if (!told.contains(text)) {
      result.push_back(fmt::format("column {}.{} should be absent and is {}", name, line.column, line.what));
    }
  }
  return result;
}

}  // namespace dlock::migrate
