// The source tree as the laws see it: texts with paths, with comments and literals told apart.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::architecture {

struct Source {
  std::string path;  // from the root, with /
  std::string text;

  bool in(std::string_view folder) const { return path.starts_with(folder); }
  bool ends(std::initializer_list<std::string_view> endings) const;
};

using Tree = std::vector<Source>;

// What is wrong, and where.
struct Breach {
  std::string path;
  std::size_t line = 0;
  std::string what;
};
using Breaches = std::vector<Breach>;
std::ostream& operator<<(std::ostream& out, const Breach& breach);

// All files of the given folders (or files) below `root`, ordered by path. Folders named build are left out.
Tree read_tree(const std::filesystem::path& root, std::initializer_list<std::string_view> parts);

// A string literal; adjacent ones are one.
struct Literal {
  std::size_t line = 0;
  std::string text;
};

// A text taken apart. In `code`, comments and the insides of literals are blanks; lines are where they were.
struct Parts {
  std::string code;
  std::vector<Literal> literals;
};
Parts parts_of_cpp(std::string_view text);
Parts parts_of_cmake(std::string_view text);
// SQL without its comments; literals stay.
std::string sql_without_comments(std::string_view text);

struct Include {
  std::size_t line = 0;
  bool quoted = false;
  std::string path;
};
std::vector<Include> includes_of(std::string_view text);

std::size_t line_at(std::string_view text, std::size_t offset);

}  // namespace dlock::architecture
