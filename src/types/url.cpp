// This file knows how a database URL is taken apart (RFC 3986, as far as databases use it).
#include "types/url.hpp"

#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock {
namespace {

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

[[noreturn]] void refuse(std::string_view url, std::string_view rule) {
  throw Error(Fault::misuse, fmt::format("the database URL {} {}", in_quotes(without_password(url)), rule));
}

bool scheme_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == '_';
}

std::vector<std::pair<std::string, std::string>> options_of(std::string_view query, std::string_view url) {
  std::vector<std::pair<std::string, std::string>> result;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0)
      refuse(url, fmt::format("has the option {}; an option is written key=value", in_quotes(item)));
    result.emplace_back(percent_decoded(item.substr(0, equals), url), percent_decoded(item.substr(equals + 1), url));
  }
  return result;
}

bool secret_key(std::string_view key) {
  std::string lower(key);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower.find("pass") != std::string::npos || lower.find("pwd") != std::string::npos;
}

}  // namespace

std::string percent_decoded(std::string_view text, std::string_view url) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex(text[i + 2]) : -1;
    if (high < 0 || low < 0) refuse(url, "has a % that is not followed by two hexadecimal digits (write % itself as %25)");
    if (high == 0 && low == 0) refuse(url, "has a NUL byte (%00)");
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

Url Url::parse(std::string_view text) {
  if (text.empty()) throw Error(Fault::misuse, "the database URL is empty; write for example sqlite:app.db");
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
    refuse(text, "has a control character in it (a line break, say); it would be written as %XX");
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 ||
      !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), scheme_character))
    refuse(text, "has no scheme; write for example sqlite:app.db");

  Url url;
  url.scheme = text.substr(0, colon);
  auto rest = text.substr(colon + 1);
  if (const auto question = rest.find('?'); question != std::string_view::npos) {
    url.options = options_of(rest.substr(question + 1), text);
    rest = rest.substr(0, question);
  }
  if (rest.substr(0, 2) == "//") {
    url.has_authority = true;
    rest.remove_prefix(2);
    const auto slash = std::min(rest.find('/'), rest.size());
    auto authority = rest.substr(0, slash);
    rest = rest.substr(slash);
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
      const auto account = authority.substr(0, at);
      authority.remove_prefix(at + 1);
      const auto split = std::min(account.find(':'), account.size());
      url.user = percent_decoded(account.substr(0, split), text);
      if (split < account.size()) url.password = percent_decoded(account.substr(split + 1), text);
    }
    url.hosts = authority;
  }
  url.path = percent_decoded(rest, text);
  return url;
}

std::string without_password(std::string_view url) {
  std::string result;
  auto rest = url;
  if (const auto slashes = rest.find("://"); slashes != std::string_view::npos) {
    const auto begin = slashes + 3;
    // The account ends at the last @ before the path; a raw / or ? in a password is malformed but must not be shown.
    const auto at = rest.rfind('@');
    const auto colon = rest.find(':', begin);
    if (at != std::string_view::npos && colon != std::string_view::npos && colon < at) {
      result += rest.substr(0, colon);
      result += ":***";
      rest = rest.substr(at);
    }
  }
  const auto question = rest.find('?');
  result += rest.substr(0, std::min(question, rest.size()));
  if (question == std::string_view::npos) return result;
  char before = '?';
  for (auto query = rest.substr(question + 1);;) {
    const auto end = std::min(query.find('&'), query.size());
    const auto item = query.substr(0, end);
    const auto equals = std::min(item.find('='), item.size());
    result += before;
    before = '&';
    result += item.substr(0, equals);
    if (equals < item.size()) {
      result += '=';
      result += secret_key(item.substr(0, equals)) ? std::string_view{"***"} : item.substr(equals + 1);
    }
    if (end >= query.size()) return result;
    query.remove_prefix(end + 1);
  }
}

}  // namespace dlock
