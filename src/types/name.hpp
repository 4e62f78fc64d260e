// Which texts may enter the table: names, labels, metadata, identifiers.
#pragma once

#include <string>
#include <string_view>

namespace dlock {

// The name of a resource: 1 to 255 bytes of UTF-8 without NUL, compared as bytes. Holds only valid names.
class Name {
 public:
  // Throws Error{misuse}, naming the value and the rule.
  explicit Name(std::string_view text);

  const std::string& text() const noexcept { return text_; }
  friend bool operator==(const Name&, const Name&) = default;
  friend auto operator<=>(const Name&, const Name&) = default;

 private:
  std::string text_;
};

// Throws Error{misuse} unless `text` is at most `limit` bytes of UTF-8 without NUL. `what` names the argument.
void check_text(std::string_view what, std::string_view text, std::size_t limit);

// Throws Error{misuse} unless `text` is [A-Za-z_][A-Za-z0-9_]{0,47}. `what` names the argument.
void check_identifier(std::string_view what, std::string_view text);

// `text` in double quotes, made printable and short for an error message.
std::string in_quotes(std::string_view text);

}  // namespace dlock
