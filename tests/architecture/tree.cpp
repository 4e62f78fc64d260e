// How much of C++, CMake and SQL has to be understood to tell code from comments and literals.
#include "architecture/tree.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>

namespace dlock::architecture {
namespace {

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Copies into `code` what is code, and blanks for the rest.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }
  bool sees(std::string_view word) const { return text_.substr(at_, word.size()) == word; }
  char before() const { return at_ == 0 ? '\n' : text_[at_ - 1]; }

  void keep() {
    const char c = text_[at_++];
    parts_.code += c;
    if (std::isspace(static_cast<unsigned char>(c)) == 0) adjacent_ = false;
  }
  // Blanks up to and including `end` (or to the end of the text).
  std::string_view blank_past(std::string_view end, std::size_t skip) {
    const auto found = text_.find(end, std::min(at_ + skip, text_.size()));
    return blank(found == std::string_view::npos ? text_.size() : found + end.size());
  }
  std::string_view blank(std::size_t until) {
    const auto piece = text_.substr(at_, until - at_);
    for (const char c : piece) parts_.code += c == '\n' ? '\n' : ' ';
    at_ = until;
    return piece;
  }
  // Blanks a literal in `quote`s with escapes and remembers it.
  void literal(char quote) {
    auto end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    const auto line = line_at(text_, at_);
    const auto whole = blank(std::min(end + 1, text_.size()));
    if (quote == '"') remember(line, whole.size() < 2 ? std::string_view{} : whole.substr(1, whole.size() - 2));
  }
  void raw_literal() {  // at the quote of R"delimiter(…)delimiter"
    const auto open = text_.find('(', at_);
    const auto end = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const auto line = line_at(text_, at_);
    const auto whole = blank_past(end, 0);
    const auto inside = whole.find('(') + 1;
    remember(line, whole.substr(inside, whole.size() - std::min(whole.size(), inside + end.size())));
  }
  Parts take() { return std::move(parts_); }

 private:
  void remember(std::size_t line, std::string_view text) {
    if (adjacent_ && !parts_.literals.empty()) parts_.literals.back().text += text;
    else parts_.literals.push_back({line, std::string(text)});
    adjacent_ = true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool adjacent_ = false;
  Parts parts_;
};

}  // namespace

bool Source::ends(std::initializer_list<std::string_view> endings) const {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view end) { return path.ends_with(end); });
}

std::ostream& operator<<(std::ostream& out, const Breach& breach) {
  return out << breach.path << ':' << breach.line << ": " << breach.what;
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  return 1 +
         static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

Tree read_tree(const std::filesystem::path& root, std::initializer_list<std::string_view> parts) {
  namespace fs = std::filesystem;
  Tree tree;
  const auto add = [&](const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    tree.push_back({file.lexically_relative(root).generic_string(), {std::istreambuf_iterator<char>(in), {}}});
  };
  for (const auto part : parts) {
    const auto path = root / part;
    if (fs::is_regular_file(path)) add(path);
    if (!fs::is_directory(path)) continue;
    for (auto entry = fs::recursive_directory_iterator(path); entry != fs::recursive_directory_iterator(); ++entry) {
      if (entry->is_directory() && entry->path().filename() == "build") entry.disable_recursion_pending();
      else if (entry->is_regular_file()) add(entry->path());
    }
  }
  std::sort(tree.begin(), tree.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
  return tree;
}

Parts parts_of_cpp(std::string_view text) {
  Walker walk(text);
  while (!walk.done()) {
    if (walk.sees("//")) walk.blank_past("\n", 2);
    else if (walk.sees("/*")) walk.blank_past("*/", 2);
    else if (walk.sees("\"") && walk.before() == 'R') walk.raw_literal();
    else if (walk.sees("\"")) walk.literal('"');
    else if (walk.sees("'") && !word_character(walk.before())) walk.literal('\'');  // else it groups digits
    else walk.keep();
  }
  return walk.take();
}

Parts parts_of_cmake(std::string_view text) {
  Walker walk(text);
  while (!walk.done()) {
    if (walk.sees("#")) walk.blank_past("\n", 1);
    else if (walk.sees("\"")) walk.literal('"');
    else walk.keep();
  }
  return walk.take();
}

std::string sql_without_comments(std::string_view text) {
  Walker walk(text);
  bool quoted = false;
  while (!walk.done()) {
    if (walk.sees("'")) quoted = !quoted;
    if (!quoted && walk.sees("--")) walk.blank_past("\n", 2);
    else if (!quoted && walk.sees("/*M!")) walk.blank_past("*/", 4);  // to MySQL it is a comment
    else walk.keep();
  }
  return walk.take().code;
}

std::vector<Include> includes_of(std::string_view text) {
  static const std::regex form(R"(^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"])", std::regex::multiline);
  std::vector<Include> found;
  const std::string copy(text);
  for (std::sregex_iterator at(copy.begin(), copy.end(), form), end; at != end; ++at)
    found.push_back({line_at(copy, static_cast<std::size_t>(at->position(1))), (*at)[1] == "\"", (*at)[2]});
  return found;
}

}  // namespace dlock::architecture
