// How the text of a migration is read.
#include "migrate/migrations.hpp"

#include "migrate/structure.hpp"
#include "types/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace dlock::migrate
