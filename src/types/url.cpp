// How a database URL is taken apart (RFC 3986, as far as databases use it), which ones are refused, and what of one may
// be shown: nothing that could be a password.
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

bool is_scheme(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), scheme_character);
}

bool has(std::string_view text, std::string_view any_of) {
  return text.find_first_of(any_of) != std::string_view::npos;
}

// scheme://account@hosts/path?query, or scheme:path?query: where the parts are, as written.
struct UrlParts {
  std::string_view scheme;
  bool has_authority = false;
  std::optional<std::string_view> account;
  std::string_view hosts, path;
  std::optional<std::string_view> query;
};

// `text` has a scheme.
UrlParts parts_of(std::string_view text) {
  UrlParts parts;
  const auto colon = text.find(':');
  parts.scheme = text.substr(0, colon);
  auto rest = text.substr(colon + 1);
  if (const auto question = rest.find('?'); question != std::string_view::npos) {
    parts.query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  if (rest.starts_with("//")) {
    parts.has_authority = true;
    rest.remove_prefix(2);
    auto authority = rest.substr(0, rest.find('/'));
    rest.remove_prefix(authority.size());
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
      parts.account = authority.substr(0, at);
      authority.remove_prefix(at + 1);
    }
    parts.hosts = authority;
  }
  parts.path = rest;
  return parts;
}

// host, host:port, [address], [address]:port. What is no number behind a colon is likely to be the begin of a password.
bool is_place(std::string_view place) {
  if (has(place, "=;")) return false;  // a connection string of another kind
  if (place.starts_with('[')) place.remove_prefix(std::min(place.find(']'), place.size()));
  const auto colon = place.find(':');
  return colon == std::string_view::npos || place.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

// Whether hosts are what stands where hosts do. A raw /, ? or @ in a password ends the authority early: then its begin
// stands there, and the rest, with the @ that was to end it, behind.
bool has_hosts_in_place(const UrlParts& parts) {
  if (!parts.has_authority) return true;
  for (auto rest = parts.hosts;;) {
    const auto place = rest.substr(0, rest.find(','));
    if (!is_place(place)) return false;
    if (place.size() == rest.size()) break;
    rest.remove_prefix(place.size() + 1);
  }
  if (has(parts.path, "@")) return false;
  return !parts.query || !has(*parts.query, "@") || (!parts.account && !has(parts.hosts, ":"));
}

std::vector<std::pair<std::string, std::string>> options_of(std::string_view query, std::string_view url) {
  std::vector<std::pair<std::string, std::string>> result;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0)
      refuse(url, fmt::format("has no = in its option number {}; an option is written key=value", result.size() + 1));
    result.emplace_back(percent_decoded(item.substr(0, equals), url), percent_decoded(item.substr(equals + 1), url));
  }
  return result;
}

// Whether this is, or names, something that nobody should read: also with %XX in it.
bool is_secret(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      c = static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    }
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (const std::string_view word : {"pass", "pwd", "secret", "token", "credential"})
    if (plain.find(word) != std::string::npos) return true;
  return false;
}

constexpr std::string_view hidden = "***";

// A query as it may be shown: keys, and values of keys that are not secret.
std::string shown_query(std::string_view query) {
  std::string result;
  for (char before = '?';; before = '&') {
    const auto item = query.substr(0, query.find('&'));
    const auto equals = std::min(item.find('='), item.size());
    result += before;
    if (equals == item.size() && item != hidden) {  // no option: who knows what it is
      result += item.empty() ? item : hidden;
    } else {
      result += item.substr(0, equals);
      if (equals < item.size()) result += '=';
      if (equals < item.size()) result += is_secret(item) ? hidden : item.substr(equals + 1);
    }
    if (item.size() == query.size()) return result;
    query.remove_prefix(item.size() + 1);
  }
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
    if (high < 0 || low < 0)
      refuse(url, "has a % that is not followed by two hexadecimal digits (write % itself as %25)");
    if (high == 0 && low == 0) refuse(url, "has a NUL byte (%00)");
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

std::string_view scheme_of(std::string_view url) {
  if (url.empty()) throw Error(Fault::misuse, "the database URL is empty; write for example sqlite:app.db");
  const auto colon = url.find(':');
  if (colon == std::string_view::npos || !is_scheme(url.substr(0, colon)))
    refuse(url, "has no scheme; write for example sqlite:app.db");
  return url.substr(0, colon);
}

std::optional<std::string> Url::take(std::string_view key) {
  std::optional<std::string> found;
  std::erase_if(options, [&](auto& option) {
    if (option.first != key) return false;
    found = std::move(option.second);
    return true;
  });
  return found;
}

Url Url::parse(std::string_view text) {
  static_cast<void>(scheme_of(text));
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
    refuse(text, "has a control character in it (a line break, say); it would be written as %XX");
  const auto parts = parts_of(text);
  if (!has_hosts_in_place(parts))
    refuse(text,
           "has no host, or no port, where one belongs: a /, ? or @ in a user, a password, a path or an option is "
           "written %2F, %3F or %40");
  // What is shown of a URL later shows its user and its path.
  const auto tells = [](std::string_view part) { return has(part, "=") && (has(part, ";") || is_secret(part)); };
  if (tells(parts.path))
    refuse(
        text,
        "seems to have a password where the name of the database belongs; a password stands between the user and the "
        "@, as in user:password@host, and a = in a name is written %3D");
  if (parts.account && tells(parts.account->substr(0, parts.account->find(':'))))
    refuse(text, "seems to have a password in the name of the user; a = in a name is written %3D");
  Url url;
  url.scheme = parts.scheme;
  url.has_authority = parts.has_authority;
  if (parts.query) url.options = options_of(*parts.query, text);
  if (parts.account) {
    const auto split = std::min(parts.account->find(':'), parts.account->size());
    url.user = percent_decoded(parts.account->substr(0, split), text);
    if (split < parts.account->size()) url.password = percent_decoded(parts.account->substr(split + 1), text);
  }
  url.hosts = parts.hosts;
  url.path = percent_decoded(parts.path, text);
  return url;
}

std::string without_password(std::string_view url) {
  const auto colon = url.find(':');
  if (colon == std::string_view::npos || !is_scheme(url.substr(0, colon)))
    return std::string(has(url, ":@=;") || is_secret(url) ? hidden : url);
  const auto parts = parts_of(url);
  std::string result(url.substr(0, colon + 1));
  if (parts.has_authority) result += "//";
  if (!has_hosts_in_place(parts) || (!parts.has_authority && has(parts.path, "@"))) return result.append(hidden);
  if (parts.account) {
    const auto user = parts.account->substr(0, parts.account->find(':'));
    result += has(user, "@=;") ? hidden : user;
    if (user.size() < parts.account->size()) result.append(":").append(hidden);
    result += '@';
  }
  result += parts.hosts;
  // A path of key=value is no path, but a connection string of another kind.
  if (has(parts.path, "=;") || is_secret(parts.path)) result += parts.has_authority ? "/***" : hidden;
  else result += parts.path;
  if (parts.query) result += shown_query(*parts.query);
  return result;
}

}  // namespace dlock
