// Which words of argv may hold a password.
#include "tools/shared/arguments.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace dlock::tools {
namespace {

// Where in the word a URL begins; npos if there is none.
std::size_t url_in(std::string_view word, std::string_view before) {
  if (before == "-u" || before == "--url") return 0;
  if (word.starts_with("--url=")) return 6;
  const auto slashes = word.find("://");
  if (slashes == std::string_view::npos) return slashes;
  // "-uURL", "--xyz=URL", or the URL itself: keep the flag readable.
  const auto equals = word.substr(0, slashes).find('=');
  if (equals != std::string_view::npos) return equals + 1;
  return word.starts_with("-u") ? 2 : 0;
}

}  // namespace

Arguments take_arguments(int argc, char** argv) {
  Arguments result;
  if (argc > 0) result.program = argv[0];
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (result.cut) {
      result.command.emplace_back(word);
      continue;
    }
    if (word == "--") {
      result.cut = true;
      continue;
    }
    const auto begin = url_in(word, result.words.empty() ? std::string_view{} : result.words.back());
    result.words.emplace_back(word);
    if (begin != std::string_view::npos) std::memset(argv[i] + begin, '*', word.size() - begin);
  }
  return result;
}

}  // namespace dlock::tools
