// The rule of vendors: where the names of databases and of their client libraries may stand.
#include "architecture/rules.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <set>

namespace dlock::architecture {
namespace {

// Whole parts of the tree with a reason of their own.
constexpr std::array<std::string_view, 12> free_parts{
    "src/dialects/postgresql/",
    "src/dialects/mysql/",
    "src/dialects/sqlite/",
    "tools/benchmark/peers/postgresql.",
    "tools/benchmark/peers/mysql.",
    "tools/benchmark/peers/sqlite.",
    "include/dlock/soci.hpp",
    "include/dlock/libpq.hpp",
    "include/dlock/mysql.hpp",
    "include/dlock/sqlite.hpp",
    // Finds the library that the tests and the demo, like any application, talk to the databases with.
    "cmake/FindSOCI.cmake",
    "cmake/soci-shim/",
};

// Applications of the library, with sessions and tables of their own.
constexpr std::array<std::string_view, 2> applications{"tools/demo/", "examples/"};

// Texts for people that show a URL or say what to install. Each must still be there.
struct Example {
  std::string_view path, text;
};
constexpr Example examples[] = {
    {"src/types/url.cpp", "write for example sqlite:app.db"},
    {"cmake/DlockDialects.cmake", "install libpq-dev, libmariadb-dev or libsqlite3-dev"},
    {"tools/benchmark/main.cpp", "-u sqlite:app.db"},
};

const std::regex& names() {
  static const std::regex form(R"(postgres|libpq|\bPQ[a-zA-Z]|\bPG[a-zA-Z]|\bpg_|mysql|mariadb|sqlite|\bsoci|_soci)",
                               std::regex::icase);
  return form;
}

bool free(const Source& source) {
  const auto inside = [&](std::string_view part) { return source.in(part); };
  return std::any_of(applications.begin(), applications.end(), inside) ||
         std::any_of(free_parts.begin(), free_parts.end(), inside);
}

bool told(const Breaches& found, const std::string& path, std::size_t line) {
  return std::any_of(found.begin(), found.end(), [&](const Breach& b) { return b.path == path && b.line == line; });
}

}  // namespace

Breaches vendors(const Tree& tree) {
  Breaches found;
  std::set<const Example*> used;
  for (const auto& source : tree) {
    const bool cpp = source.ends({".hpp", ".cpp", ".h", ".hpp.in", ".cpp.in"});
    const bool cmake = source.ends({".cmake", "CMakeLists.txt", ".cmake.in", "CMakePresets.json"});
    if ((!cpp && !cmake) || source.in("tests/") || source.in("migrations/") || source.in("schema/") || free(source))
      continue;
    const auto parts = cpp ? parts_of_cpp(source.text) : parts_of_cmake(source.text);
    for (std::sregex_iterator at(parts.code.begin(), parts.code.end(), names()), end; at != end; ++at)
      if (const auto line = line_at(parts.code, static_cast<std::size_t>(at->position()));
          !told(found, source.path, line))
        found.push_back({source.path, line, at->str() + " in the code"});
    for (const auto& literal : parts.literals) {
      auto text = literal.text;
      for (const auto& example : examples) {
        if (source.path != example.path) continue;
        if (const auto shown = text.find(example.text); shown != std::string::npos) {
          text.erase(shown, example.text.size());
          used.insert(&example);
        }
      }
      if (std::smatch match; std::regex_search(text, match, names()))
        found.push_back({source.path, literal.line, match.str() + " in \"" + literal.text + "\""});
    }
    for (const auto& include : includes_of(source.text))
      if (!told(found, source.path, include.line) && std::regex_search(include.path, names()))
        found.push_back({source.path, include.line, "includes " + include.path});
    for (const auto& example : examples)
      if (source.path == example.path && !used.contains(&example))
        found.push_back(
            {source.path, 1, "no longer shows \"" + std::string(example.text) + "\": take it off the list"});
  }
  return found;
}

}  // namespace dlock::architecture
