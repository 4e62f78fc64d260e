// This file knows how durations and numbers are written on a command line.
#include "tools/shared/usage.hpp"

#include <fmt/format.h>
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

bool digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void refuse_duration(std::string_view flag, std::string_view text) {
  throw UsageError(fmt::format("{} {} is not a duration; write for example 500ms, 30s, 5m, or a number of seconds", flag,
                               in_quotes(text)));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) result += fmt::format("\\x{:02x}", byte);
    else result += c;
  }
  return result;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  const bool valid = utf8::is_valid(text.begin(), text.end());
  std::string result = "\"";
  std::size_t shown = std::min(text.size(), longest);
  while (shown > 0 && shown < text.size() && (static_cast<unsigned char>(text[shown]) & 0xC0) == 0x80) --shown;
  for (const char c : text.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') result += '\\';
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !valid)) result += fmt::format("\\x{:02x}", byte);
    else result += c;
  }
  return result + (shown < text.size() ? "…\"" : "\"");
}

Duration parse_duration(std::string_view flag, std::string_view text) {
  auto end = text.begin();
  while (end != text.end() && (digit(*end) || *end == '.')) ++end;
  const auto figures = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&](const Unit& u) { return u.name == text.substr(figures.size()); });
  const auto point = figures.find('.');
  const auto whole = figures.substr(0, point);
  const auto fraction = point == std::string_view::npos ? std::string_view{} : figures.substr(point + 1);
  if (unit == units.end() || (whole.empty() && fraction.empty()) || fraction.find('.') != std::string_view::npos)
    refuse_duration(flag, text);

  const auto limit = std::numeric_limits<std::int64_t>::max();
  const auto refuse_long = [&] {
    throw UsageError(fmt::format("{} {} is too long; at most 290000 years are possible", flag, in_quotes(text)));
  };
  std::int64_t count = 0;
  for (const char c : whole) {
    const std::int64_t next = c - '0';
    if (count > (limit / unit->microseconds - next) / 10) refuse_long();
    count = count * 10 + next;
  }
  std::int64_t result = count * unit->microseconds;
  std::int64_t step = unit->microseconds;
  for (const char c : fraction) {  // what lies below a microsecond is cut
    step /= 10;
    const std::int64_t part = (c - '0') * step;
    if (result > limit - part) refuse_long();
    result += part;
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
