// How durations and numbers are written on a command line, and how a duration is shown; and what of a text is not:
// passwords, and what could command a terminal.
#include "tools/shared/usage.hpp"

#include <fmt/core.h>
#include <utf8.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace dlock::tools {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t microseconds;
};

constexpr std::array<Unit, 7> units{{{"us", 1},
                                     {"ms", 1'000},
                                     {"s", 1'000'000},
                                     {"m", 60'000'000},
                                     {"h", 3'600'000'000},
                                     {"d", 86'400'000'000},
                                     {"", 1'000'000}}};

struct Part {
  std::size_t size = 0;  // 0: it is none
  std::string_view whole{}, fraction{};
  Unit unit{};
};

// "1h" of "1h30m".
Part first_part(std::string_view text) {
  const auto figures = text.substr(0, std::min(text.find_first_not_of("0123456789."), text.size()));
  const auto name = text.substr(
      figures.size(), std::min(text.find_first_of("0123456789.", figures.size()), text.size()) - figures.size());
  const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& each) { return each.name == name; });
  const auto point = figures.find('.');
  Part part{0,
            figures.substr(0, point),
            point == std::string_view::npos ? std::string_view{} : figures.substr(point + 1),
            {}};
  if (unit == units.end() || (part.whole.empty() && part.fraction.empty()) ||
      part.fraction.find('.') != std::string_view::npos)
    return {};
  part.size = figures.size() + name.size();
  part.unit = *unit;
  return part;
}

[[noreturn]] void refuse_duration(std::string_view flag, std::string_view text) {
  throw UsageError(fmt::format("{} {} is not a duration; write for example 500ms, 30s, 5m, or a number of seconds",
                               flag, in_quotes(text)));
}

bool is_secret_key(std::string_view key) {
  std::string lower(key);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const std::string_view word : {"pass", "pwd", "secret"})
    if (lower.find(word) != std::string::npos) return true;
  return false;
}

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '%';
}

// password=…, Pwd='…', with *** for the value.
std::string without_secret_values(std::string_view text) {
  std::string result;
  for (auto equals = text.find('='); equals != std::string_view::npos; equals = text.find('=')) {
    auto key = equals;
    while (key > 0 && is_key_character(text[key - 1])) --key;
    const bool secret = is_secret_key(text.substr(key, equals - key));
    result += text.substr(0, equals + 1);
    text.remove_prefix(equals + 1);
    if (!secret || text.empty()) continue;
    const bool quoted = text.front() == '\'' || text.front() == '"';
    const auto end = quoted ? text.find(text.front(), 1) : text.find_first_of(" \t\r\n&;\"'");
    result += "***";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + (quoted ? 1 : 0));
  }
  return result.append(text);
}

// How many bytes at the beginning are a character that terminals obey and do not show: a control character (those of C1
// are two bytes in UTF-8), or one that turns the direction of what follows.
std::size_t obeyed(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto is = [&](std::size_t i, unsigned first, unsigned last) { return byte(i) >= first && byte(i) <= last; };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
  if ((byte(0) == 0xC2 && is(1, 0x80, 0x9F)) || (byte(0) == 0xD8 && byte(1) == 0x9C)) return 2;
  if (byte(0) != 0xE2) return 0;
  const bool turns =
      (byte(1) == 0x80 && (is(2, 0x8E, 0x8F) || is(2, 0xAA, 0xAE))) || (byte(1) == 0x81 && is(2, 0xA6, 0xA9));
  return turns ? 3 : 0;
}

void append_bytes(std::string& to, std::string_view text) {
  for (const char c : text) to += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto hidden = obeyed(text);
    if (hidden > 0) append_bytes(result, text.substr(0, hidden));
    else result += text.front();
    text.remove_prefix(std::max<std::size_t>(hidden, 1));
  }
  return result;
}

std::string without_passwords(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto values_hidden = without_secret_values(text);
  text = values_hidden;
  std::string result;
  while (!text.empty()) {
    auto word = text.substr(0, text.find_first_of(blanks));
    text.remove_prefix(word.size());
    if (const auto slashes = word.find("://"); slashes != std::string_view::npos) {
      const auto at = word.rfind('@');
      const auto colon = word.find(':', slashes + 3);
      if (at != std::string_view::npos && colon < at) {
        result.append(word.substr(0, colon)).append(":***");
        word.remove_prefix(at);
      }
    }
    result += word;
    const auto gap = std::min(text.find_first_not_of(blanks), text.size());
    result += text.substr(0, gap);
    text.remove_prefix(gap);
  }
  return result;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string result;
  for (const auto& word : words) {
    if (&word != &words.front()) result += between;
    result += word;
  }
  return result;
}

std::string in_quotes(std::string_view whole) {
  constexpr std::size_t longest = 80;
  const auto text = without_passwords(whole);
  const bool valid = utf8::is_valid(text.begin(), text.end());
  std::string result = "\"";
  std::size_t shown = std::min(text.size(), longest);
  while (shown > 0 && shown < text.size() && (static_cast<unsigned char>(text[shown]) & 0xC0) == 0x80) --shown;
  for (auto rest = std::string_view(text).substr(0, shown); !rest.empty();) {
    const char c = rest.front();
    const auto hidden = static_cast<unsigned char>(c) >= 0x80 && !valid ? 1 : obeyed(rest);
    if (c == '"' || c == '\\') result += '\\';
    if (hidden > 0) append_bytes(result, rest.substr(0, hidden));
    else result += c;
    rest.remove_prefix(std::max<std::size_t>(hidden, 1));
  }
  return result + (shown < text.size() ? "…\"" : "\"");
}

Duration parse_duration(std::string_view flag, std::string_view text) {
  const auto limit = std::numeric_limits<std::int64_t>::max();
  const auto refuse_long = [&] {
    throw UsageError(fmt::format("{} {} is too long; at most 290000 years are possible", flag, in_quotes(text)));
  };
  std::int64_t result = 0, last_unit = limit;
  for (auto rest = text; !rest.empty() || text.empty();) {
    const auto part = first_part(rest);
    const bool alone = part.size == text.size();
    // "1h30m": larger units first, each with its name, none cut in fractions.
    if (part.size == 0 ||
        (!alone && (part.unit.name.empty() || !part.fraction.empty() || part.unit.microseconds >= last_unit)))
      refuse_duration(flag, text);
    last_unit = part.unit.microseconds;
    rest.remove_prefix(part.size);
    std::int64_t count = 0;
    for (const char c : part.whole) {
      const std::int64_t next = c - '0';
      if (count > (limit / last_unit - next) / 10) refuse_long();
      count = count * 10 + next;
    }
    if (result > limit - count * last_unit) refuse_long();
    result += count * last_unit;
    std::int64_t step = last_unit;
    for (const char c : part.fraction) {  // what lies below a microsecond is cut
      step /= 10;
      const std::int64_t more = (c - '0') * step;
      if (result > limit - more) refuse_long();
      result += more;
    }
  }
  return Duration{result};
}

Duration parse_positive_duration(std::string_view flag, std::string_view text) {
  const auto result = parse_duration(flag, text);
  if (result <= Duration{}) throw UsageError(fmt::format("{} {} must be longer than 0", flag, in_quotes(text)));
  return result;
}

std::int64_t parse_number(std::string_view flag, std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc{} || end != text.data() + text.size() || result < low || result > high)
    throw UsageError(fmt::format("{} {} is not a whole number from {} to {}", flag, in_quotes(text), low, high));
  return result;
}

std::string shown(Duration duration) {
  const auto us = duration.count();
  // The magnitude as unsigned: the smallest duration has no positive counterpart.
  const auto size = us < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(us) : static_cast<std::uint64_t>(us);
  const std::string sign = us < 0 ? "-" : "";
  const auto seconds = size / 1'000'000;
  if (size < 1'000) return fmt::format("{}{}us", sign, size);
  if (size < 1'000'000) return fmt::format("{}{}ms", sign, size / 1'000);
  if (seconds < 60) return fmt::format("{}{}.{}s", sign, seconds, size / 100'000 % 10);
  if (seconds < 3'600) return fmt::format("{}{}m{}s", sign, seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{}{}h{}m", sign, seconds / 3'600, seconds / 60 % 60);
  return fmt::format("{}{}d{}h", sign, seconds / 86'400, seconds / 3'600 % 24);
}

}  // namespace dlock::tools
