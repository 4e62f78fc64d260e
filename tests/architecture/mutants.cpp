// Holds the planted faults, the list of them and the tests they are shown to against each other.
#include "architecture/rules.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace dlock::architecture {
namespace {

constexpr std::string_view list_path = "tests/mutants/list";
constexpr std::string_view folder = "tests/mutants/";

const Source* find(const Tree& tree, std::string_view path) {
  const auto at = std::ranges::find(tree, path, &Source::path);
  return at == tree.end() ? nullptr : &*at;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) {
    const auto begin = part.find_first_not_of(' ');
    if (begin != std::string::npos) parts.push_back(part.substr(begin, part.find_last_not_of(' ') + 1 - begin));
  }
  return parts;
}

// A name, the databases, and where there is a test its file and title.
struct Row {
  std::size_t line = 0;
  std::vector<std::string> columns, databases;
};

std::vector<Row> rows_of(const Source& list, Breaches& found) {
  std::vector<Row> rows;
  std::istringstream in(list.text);
  std::size_t line = 0;
  for (std::string text; std::getline(in, text);) {
    ++line;
    if (text.empty() || text.starts_with('#')) continue;
    auto columns = split(text, '|');
    if (columns.size() < 2 || columns.size() == 3 || columns.size() > 5 ||
        (columns.size() == 5 && columns[4] != "alone")) {
      found.push_back({list.path, line, "is not written name | databases | test | title | alone"});
      continue;
    }
    auto databases = split(columns[1], ' ');
    rows.push_back({line, std::move(columns), std::move(databases)});
  }
  return rows;
}

bool has_title(const Source& test, const std::string& title) {
  const auto star = title.find('*');
  for (const auto& literal : parts_of_cpp(test.text).literals)
    if (star == std::string::npos ? literal.text == title : literal.text.starts_with(title.substr(0, star)))
      return true;
  return false;
}

// A statement with its header, in whichever file of the dialect it is.
std::string statement_of(const Tree& tree, const std::string& dialect, const std::string& name) {
  for (const auto& source : tree) {
    if (!source.in("src/dialects/" + dialect + "/") || !source.ends({".sql"})) continue;
    const auto begin = source.text.find("-- name: " + name + "(");
    if (begin != std::string::npos) return source.text.substr(begin, source.text.find("-- name:", begin + 1) - begin);
  }
  return {};
}

struct Replacement {
  std::size_t line = 0;
  std::string mutant, statement, from;
};

std::vector<Replacement> replacements_of(const Source& source) {
  std::vector<Replacement> found;
  std::istringstream in(source.text);
  std::string mutant;
  std::size_t number = 0;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("-- mutant: ")) mutant = line.substr(11);
    if (line.starts_with("-- statement: ")) found.push_back({number, mutant, line.substr(14), {}});
    if (line.starts_with("-- ")) inside = line == "-- from:";
    else if (inside) found.back().from += (found.back().from.empty() ? "" : "\n") + line;
  }
  return found;
}

}  // namespace

Breaches mutants(const Tree& tree) {
  static const std::regex use(R"~(\bplanted\("(\w+)"\))~");
  Breaches found;
  const auto* list = find(tree, list_path);
  if (list == nullptr) return {{std::string(list_path), 1, "is missing"}};
  const auto rows = rows_of(*list, found);
  const auto listed = [&](const std::string& name, const std::string& database) {
    return std::ranges::any_of(rows, [&](const Row& row) {
      return row.columns[0] == name && (database.empty() || std::ranges::count(row.databases, database) > 0);
    });
  };
  std::set<std::string> planted;
  for (const auto& source : tree) {
    if (source.path == "src/types/mutant.hpp") continue;  // says how one is written
    if (source.in("src/") || source.in("tools/"))
      for (std::sregex_iterator at(source.text.begin(), source.text.end(), use), end; at != end; ++at) {
        planted.insert((*at)[1]);
        if (!listed((*at)[1], {}))
          found.push_back({source.path, line_at(source.text, static_cast<std::size_t>(at->position())),
                           (*at)[1].str() + " is not in " + std::string(list_path)});
      }
    if (!source.in(folder) || !source.ends({".sql"})) continue;
    const auto dialect = source.path.substr(folder.size(), source.path.size() - folder.size() - 4);
    for (const auto& each : replacements_of(source)) {
      planted.insert(each.mutant);
      if (!listed(each.mutant, dialect))
        found.push_back(
            {source.path, each.line, each.mutant + " is not in " + std::string(list_path) + " for " + dialect});
      if (each.from.empty() || statement_of(tree, dialect, each.statement).find(each.from) == std::string::npos)
        found.push_back({source.path, each.line, each.mutant + ": its text is not in statement " + each.statement});
    }
  }
  for (const auto& row : rows) {
    if (!planted.contains(row.columns[0]))
      found.push_back({list->path, row.line, row.columns[0] + " is planted nowhere"});
    if (row.columns.size() < 4) continue;
    const auto* test = find(tree, "tests/" + row.columns[2]);
    if (test == nullptr || !has_title(*test, row.columns[3]))
      found.push_back({list->path, row.line, "there is no such test"});
  }
  return found;
}

}  // namespace dlock::architecture
