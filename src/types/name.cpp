// The rules for names, texts and identifiers (how long, of which bytes), and how a refused one is shown.
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <utf8.h>

#include <algorithm>

namespace dlock {
namespace {

constexpr std::size_t longest_name = 255;
constexpr std::size_t longest_identifier = 48;
constexpr std::size_t longest_shown = 60;

void check_utf8(std::string_view what, std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    throw Error(Fault::misuse,
                fmt::format("{} {} contains a NUL byte; it must be UTF-8 without NUL", what, in_quotes(text)));
  if (!utf8::is_valid(text.begin(), text.end()))
    throw Error(Fault::misuse, fmt::format("{} {} is not valid UTF-8", what, in_quotes(text)));
}

bool letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool letter_or_digit(char c) { return letter(c) || (c >= '0' && c <= '9'); }

}  // namespace

std::string in_quotes(std::string_view text) {
  const bool valid = utf8::is_valid(text.begin(), text.end());
  std::size_t shown = std::min(text.size(), longest_shown);
  if (valid)  // never cut a character in two
    while (shown > 0 && shown < text.size() && (static_cast<unsigned char>(text[shown]) & 0xC0) == 0x80) --shown;
  std::string result = "\"";
  for (const char c : text.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !valid)) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  result += shown < text.size() ? fmt::format("…\" ({} bytes)", text.size()) : "\"";
  return result;
}

Name::Name(std::string_view text) : text_(text) {
  if (text.empty()) throw Error(Fault::misuse, "the lock name \"\" is empty; a name has 1 to 255 bytes of UTF-8");
  if (text.size() > longest_name)
    throw Error(Fault::misuse, fmt::format("the lock name {} has {} bytes; a name has 1 to {} bytes of UTF-8",
                                           in_quotes(text), text.size(), longest_name));
  check_utf8("the lock name", text);
}

void check_text(std::string_view what, std::string_view text, std::size_t limit) {
  if (text.size() > limit)
    throw Error(Fault::misuse,
                fmt::format("{} {} has {} bytes; at most {} are allowed", what, in_quotes(text), text.size(), limit));
  check_utf8(what, text);
}

void check_identifier(std::string_view what, std::string_view text) {
  const bool valid = !text.empty() && text.size() <= longest_identifier && letter(text.front()) &&
                     std::all_of(text.begin(), text.end(), letter_or_digit);
  if (!valid)
    throw Error(Fault::misuse,
                fmt::format("{} {} is not of the form [A-Za-z_][A-Za-z0-9_]{{0,47}}", what, in_quotes(text)));
}

}  // namespace dlock
