// This file knows the form of a database URL, not what any database makes of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock {

// scheme://user:password@authority/path?key=value&…, or scheme:path?key=value. Percent-decoded, except `hosts`.
struct Url {
  std::string scheme;
  bool has_authority = false;
  std::optional<std::string> user, password;
  std::string hosts;  // host[:port], or several with commas, as written
  std::string path;   // with its leading slash, if it has one
  std::vector<std::pair<std::string, std::string>> options;

  // Throws Error{misuse}; the message names the rule and shows the URL without its password.
  static Url parse(std::string_view text);
};

// `text` with its %XX read. Throws Error{misuse} on a malformed one; `url` is what the message shows.
std::string percent_decoded(std::string_view text, std::string_view url = {});

// The URL as it may be shown: password and everything that looks like one replaced by ***. Works on malformed URLs too.
std::string without_password(std::string_view url);

}  // namespace dlock
