// The rule of arrows: who may include whom.
#include "architecture/rules.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace dlock::architecture {
namespace {

constexpr std::array<std::string_view, 6> rooms{"types", "dialects", "migrate", "store", "engine", "api"};
constexpr std::array<std::string_view, 5> adapters{"include/dlock/soci.hpp", "include/dlock/libpq.hpp",
                                                   "include/dlock/mysql.hpp", "include/dlock/sqlite.hpp",
                                                   "include/dlock/asio.hpp"};

struct Costly {
  std::string_view headers, file;
};
constexpr std::array<Costly, 4> costly{{{"CLI/", "tools/shared/parser.cpp"},
                                        {"nlohmann/", "tools/shared/json.cpp"},
                                        {"nlohmann/", "tools/docgen/description.cpp"},
                                        {"nlohmann/", "tests/support/json.cpp"}}};

std::string_view first_folder(std::string_view path) { return path.substr(0, path.find('/')); }
std::string folder_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/') + 1)); }

std::optional<std::size_t> floor_of(std::string_view room) {
  const auto at = std::find(rooms.begin(), rooms.end(), room);
  if (at == rooms.end()) return std::nullopt;
  return static_cast<std::size_t>(at - rooms.begin());
}

// "sqlite" of dialects/sqlite/…, or nothing for what all dialects share.
std::string_view dialect_of(std::string_view path) {
  if (!path.starts_with("dialects/")) return {};
  path.remove_prefix(9);
  const auto slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

bool beside(const Tree& tree, const Source& source, const std::string& name) {
  const auto path = folder_of(source.path) + name;
  return std::any_of(tree.begin(), tree.end(), [&](const Source& other) { return other.path == path; });
}

std::string wrong_in_src(const Tree& tree, const Source& source, const Include& include) {
  if (!include.quoted) return {};
  const auto own = std::string_view(source.path).substr(4);
  if (beside(tree, source, include.path)) return {};
  const auto floor = floor_of(first_folder(include.path));
  if (!floor) return "includes something that is in no room";
  if (*floor > floor_of(first_folder(own)).value_or(0)) return "an arrow that goes up";
  if (const auto dialect = dialect_of(include.path); !dialect.empty() && dialect != dialect_of(own))
    return "only a dialect knows its own folder";
  return {};
}

std::string wrong_in_tools(const Tree& tree, const Source& source, const Include& include) {
  if (!include.quoted) return {};
  if (include.path.starts_with("tools/") || beside(tree, source, include.path)) return {};
  // The peers send the library's own statements without the library.
  if (source.in("tools/benchmark/peers/") && dialect_of(include.path).empty()) {
    const auto room = first_folder(include.path);
    if (room == "types" || room == "dialects") return {};
  }
  return "tools know the public headers only";
}

std::string wrong_in_public(const Source& source, const Include& include) {
  if (include.quoted) return "a public header includes by <…> only";
  const bool adapter = std::find(adapters.begin(), adapters.end(), source.path) != adapters.end();
  const bool standard = include.path.find('/') == std::string::npos && include.path.find('.') == std::string::npos;
  if (include.path.starts_with("dlock/") || standard || adapter) return {};
  return "a public header knows the standard library and its neighbours only";
}

}  // namespace

Breaches arrows(const Tree& tree) {
  Breaches found;
  for (const auto& source : tree) {
    if (!source.ends({".hpp", ".cpp", ".h", ".hpp.in"})) continue;
    for (const auto& include : includes_of(source.text)) {
      std::string wrong;
      if (include.path.find("..") != std::string::npos) wrong = "paths do not climb";
      else if (source.in("src/")) wrong = wrong_in_src(tree, source, include);
      else if (source.in("tools/")) wrong = wrong_in_tools(tree, source, include);
      else if (source.in("include/")) wrong = wrong_in_public(source, include);
      if (!wrong.empty()) found.push_back({source.path, include.line, include.path + ": " + wrong});
    }
  }
  return found;
}

Breaches costly_headers(const Tree& tree) {
  Breaches found;
  for (const auto& source : tree) {
    if (!source.ends({".hpp", ".cpp", ".h"})) continue;
    for (const auto& include : includes_of(source.text)) {
      const auto behind = [&](const Costly& each) { return include.path.starts_with(each.headers); };
      const auto allowed = [&](const Costly& each) { return behind(each) && source.path == each.file; };
      if (std::any_of(costly.begin(), costly.end(), behind) && std::none_of(costly.begin(), costly.end(), allowed))
        found.push_back({source.path, include.line, include.path + ": seconds in each file; ask the one that has it"});
    }
  }
  return found;
}

}  // namespace dlock::architecture
