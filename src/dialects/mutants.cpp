// Reads what stands in a statement in the place of the right text, and puts it there.
#ifdef DLOCK_MUTANTS
#include "dialects/mutants.hpp"

#include "types/mutant.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

namespace dlock::dialects {
namespace {

struct Replacement {
  std::string mutant, statement, from, to;
};

[[noreturn]] void cannot_plant(const Replacement& replacement) {
  std::fprintf(stderr, "mutant %s: its text is not in statement %s\n", replacement.mutant.c_str(),
               replacement.statement.c_str());
  _exit(99);
}

// What follows the mark in a line that begins with it.
bool taken(const std::string& line, std::string_view mark, std::string& rest) {
  if (!line.starts_with(mark)) return false;
  rest = line.substr(mark.size());
  return true;
}

void strip_newlines(std::string& text) {
  text.erase(0, std::min(text.find_first_not_of('\n'), text.size()));
  text.erase(text.find_last_not_of('\n') + 1);
}

std::vector<Replacement> replacements_of(std::string_view dialect) {
  std::vector<Replacement> found;
  std::ifstream file(std::string(DLOCK_MUTANTS) + "/" + std::string(dialect) + ".sql");
  std::string* text = nullptr;
  std::string mutant, rest;
  for (std::string line; std::getline(file, line);) {
    if (taken(line, "-- mutant: ", mutant)) text = nullptr;
    else if (taken(line, "-- statement: ", rest)) found.push_back({mutant, rest, {}, {}}), text = nullptr;
    else if (line == "-- from:") text = &found.back().from;
    else if (line == "-- to:") text = &found.back().to;
    else if (line.starts_with("-- ")) text = nullptr;
    else if (text != nullptr) *text += line + '\n';
  }
  for (auto& each : found) {
    strip_newlines(each.from);
    strip_newlines(each.to);
  }
  return found;
}

void replace(std::string& sql, const Replacement& what) {
  const auto begin = sql.find("-- name: " + what.statement + "(");
  if (begin == std::string::npos) return;  // it is in another file of the dialect
  if (what.from.empty()) cannot_plant(what);
  auto end = std::min(sql.find("-- name:", begin + 1), sql.size());
  bool replaced = false;
  for (auto at = sql.find(what.from, begin); at < end; at = sql.find(what.from, at)) {
    sql.replace(at, what.from.size(), what.to);
    end = end + what.to.size() - what.from.size();
    at += what.to.size();
    replaced = true;
  }
  if (!replaced) cannot_plant(what);
}

}  // namespace

std::string with_planted(std::string_view sql, std::string_view dialect) {
  std::string result(sql);
  for (const auto& each : replacements_of(dialect))
    if (planted(each.mutant)) replace(result, each);
  return result;
}

}  // namespace dlock::dialects
#endif
