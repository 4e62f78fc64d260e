// The form of a database URL, not what any database makes of it.
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

  // Takes an option out; of one that is there several times the last value counts.
  std::optional<std::string> take(std::string_view key);
};

// What stands before the colon. Throws Error{misuse} if the URL is empty, or has no scheme.
std::string_view scheme_of(std::string_view url);

// `text` with its %XX read. Throws Error{misuse} on a malformed one; `url` is what the message shows.
std::string percent_decoded(std::string_view text, std::string_view url = {});

// The URL as it may be shown: *** instead of the password, of what looks like one, and of all that cannot be known to
// be none, because the text is no URL, or a malformed one.
std::string without_password(std::string_view url);

}  // namespace dlock
