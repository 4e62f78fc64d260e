// How a description of the tables is read line by line.
#include "migrate/structure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace dlock::migrate {
namespace {

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
