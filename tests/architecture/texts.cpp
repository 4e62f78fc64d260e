// The rules about whole files: named statements, first comments, lengths.
#include "architecture/rules.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace dlock::architecture {
namespace {

// Name -> arguments as written, without blanks.
std::map<std::string, std::string> headers_of(const std::string& text) {
  static const std::regex form(R"(^-- name:[ \t]*(\w+)[ \t]*\(([^)]*)\))", std::regex::multiline);
  std::map<std::string, std::string> headers;
  for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end; ++at) {
    auto arguments = (*at)[2].str();
    arguments.erase(std::remove(arguments.begin(), arguments.end(), ' '), arguments.end());
    headers[(*at)[1]] = arguments;
  }
  return headers;
}

// The text of the first comment, and nothing if the file does not begin with one.
std::string_view first_comment(std::string_view text) {
  if (text.starts_with("#!")) text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  for (const std::string_view mark : {"// ", "-- ", "# "})
    if (text.starts_with(mark)) return text.substr(mark.size(), text.find('\n') - mark.size());
  return {};
}

// What the files of that name in the dialects' folders say differently.
void compare(const Tree& tree, std::string_view file, Breaches& found) {
  // What MySQL does not know, or knows otherwise than MariaDB; and what a later statement decides by although MySQL
  // leaves it NULL where it was interrupted, and says nothing: see holders.sql.
  static const std::pair<std::regex, std::string> unfit[] = {
      {std::regex(R"(\bRETURNING\b|\bSET\s+STATEMENT\b)", std::regex::icase), ": not in MySQL"},
      {std::regex(R"(\(\s*SELECT\b[^;]*\bINTO\s+@\w+|\bSET\s+@\w+\s*=[^;]*\(\s*SELECT\b)", std::regex::icase),
       ": what MySQL was interrupted in is kept as NULL"}};
  // A shorter way, which a database lacks where its whole statement costs no more; and what shows what is locked, which
  // each does in its own way.
  static const std::set<std::string> optional{
      "locked",        "in_the_way",          "touch_holders",     "touch_waiters",
      "locked_table",  "acquire_free",        "acquire_free_many", "release_many_at_once",
      "freed_at_once", "release_many_shared", "fence_holder_row",  "fence_holder_text",
      "fenced",        "fenced_holder"};
  const Source* first = nullptr;
  std::map<std::string, std::string> expected;
  for (const auto& source : tree) {
    if (!source.in("src/dialects/") || !source.ends({file})) continue;
    if (source.in("src/dialects/mysql/")) {
      const auto sql = sql_without_comments(source.text);
      for (const auto& [expression, why] : unfit)
        for (std::sregex_iterator at(sql.begin(), sql.end(), expression), end; at != end; ++at)
          found.push_back({source.path, line_at(sql, static_cast<std::size_t>(at->position())), at->str() + why});
    }
    const auto headers = headers_of(source.text);
    if (first == nullptr) {
      first = &source;
      expected = headers;
      continue;
    }
    for (const auto& [name, arguments] : expected) {
      const auto here = headers.find(name);
      if (here == headers.end() && optional.contains(name)) continue;
      if (here == headers.end()) found.push_back({source.path, 1, name + " is missing, which " + first->path + " has"});
      else if (here->second != arguments)
        found.push_back({source.path, 1, name + "(" + here->second + ") is (" + arguments + ") in " + first->path});
    }
    for (const auto& [name, arguments] : headers)
      if (!expected.contains(name) && !optional.contains(name))
        found.push_back({first->path, 1, name + " is missing, which " + source.path + " has"});
  }
}

}  // namespace

Breaches statements(const Tree& tree) {
  Breaches found;
  for (const std::string_view file : {"/lock.sql", "/waiting.sql", "/many.sql", "/reading.sql", "/holders.sql"})
    compare(tree, file, found);
  return found;
}

Breaches first_comments(const Tree& tree) {
  Breaches found;
  for (const auto& source : tree) {
    if (!source.ends({".hpp", ".cpp", ".h", ".hpp.in", ".cpp.in", ".cmake", ".cmake.in", ".sql"})) continue;
    if (const auto comment = first_comment(source.text); std::count(comment.begin(), comment.end(), ' ') < 3)
      found.push_back({source.path, 1, "the file does not begin with a sentence that says what it is"});
  }
  return found;
}

Breaches lengths(const Tree& tree, std::size_t most_lines) {
  Breaches found;
  for (const auto& source : tree)
    if (const auto lines = line_at(source.text, source.text.size()) - 1; source.in("src/") && lines > most_lines)
      found.push_back(
          {source.path, lines, "longer than " + std::to_string(most_lines) + " lines: there may be two files in it"});
  return found;
}

// clang-format leaves comments as they are.
Breaches widths(const Tree& tree, std::size_t most_columns) {
  Breaches found;
  for (const auto& source : tree) {
    if (!source.ends({".cpp", ".hpp"})) continue;
    const auto& literals = parts_of_cpp(source.text).literals;
    std::size_t number = 0, columns = 0;
    for (const char c : source.text + '\n') {
      if (c != '\n') {
        columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;  // of UTF-8, what begins a character
        continue;
      }
      ++number;
      const auto is_in = [&](const auto& literal) { return literal.line == number; };
      if (columns > most_columns && std::ranges::none_of(literals, is_in))
        found.push_back({source.path, number, "wider than " + std::to_string(most_columns) + " columns"});
      columns = 0;
    }
  }
  return found;
}

}  // namespace dlock::architecture
