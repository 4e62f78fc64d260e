// Hexadecimal digits: the form of bytes that no setting of a session can make mean something else.
#pragma once

#include <string>
#include <string_view>

namespace dlock::dialects {

inline void append_hex(std::string& text, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
}

}  // namespace dlock::dialects
