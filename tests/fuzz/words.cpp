// What is promised for every word of a command line: a value, or one line that says what is wrong.
#include "fuzz/targets.hpp"

#include "tools/shared/suggestion.hpp"
#include "tools/shared/usage.hpp"
#include "types/name.hpp"
#include "types/url.hpp"

#include <dlock/error.hpp>

#include <utf8.h>

#include <algorithm>
#include <string>

namespace dlock::fuzz {
namespace {

void insist_on_line(std::string_view message) {
  insist(!message.empty());
  insist(std::none_of(message.begin(), message.end(),
                      [](char c) { return c == '\n' || c == '\r' || c == '\0' || c == '\x1b'; }));
}

template <class Call>
bool accepted(Call call) {
  try {
    call();
    return true;
  } catch (const Error& error) {
    insist(error.fault() == Fault::misuse);
    insist_on_line(error.what());
  } catch (const tools::UsageError& error) { insist_on_line(error.what()); }
  return false;
}

// The text as a terminal and JSON can take it.
void insist_on_quotes(const std::string& quoted) {
  insist(quoted.size() >= 2 && quoted.front() == '"' && quoted.find('"', 1) != std::string::npos);
  insist(utf8::is_valid(quoted.begin(), quoted.end()));
  insist_on_line(quoted);
}

}  // namespace

void url(std::string_view text) {
  accepted([&] {
    const auto parsed = Url::parse(text);
    insist(!parsed.scheme.empty());
    insist(text.starts_with(parsed.scheme));
  });
  accepted([&] { static_cast<void>(percent_decoded(text)); });
  const auto shown = without_password(text);
  insist(shown == without_password(shown));
  const auto line = tools::without_passwords(text);
  insist(line == tools::without_passwords(line));
}

void duration(std::string_view text) {
  accepted([&] {
    const auto value = tools::parse_duration("--ttl", text);
    insist(value >= Duration{});
    const auto shown = tools::shown(value);
    const auto again = tools::parse_duration("--ttl", shown);  // as it is shown, cut to two units
    insist(again <= value && (value == Duration{} || again > Duration{}));
    insist(tools::shown(again) == shown);
  });
  accepted([&] {
    const auto number = tools::parse_number("--limit", text, 1, 1000);
    insist(number >= 1 && number <= 1000 && std::to_string(number).size() <= text.size());
  });
}

void name(std::string_view text) {
  const bool valid = accepted([&] {
    const Name parsed(text);
    insist(parsed.text() == text);
    insist(!text.empty() && text.size() <= 255 && utf8::is_valid(text.begin(), text.end()));
  });
  if (accepted([&] { check_identifier("--table", text); })) insist(valid && text.size() <= 48);
  insist_on_quotes(in_quotes(text));
  insist_on_quotes(tools::in_quotes(text));
  for (const auto& word : tools::nearest(text, {"run", "list", "--state", "-n"})) insist(!word.empty());
}

}  // namespace dlock::fuzz
