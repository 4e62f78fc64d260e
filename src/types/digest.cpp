// SHA-256 through libnettle, and how a text is made the same on every machine.
#include "types/digest.hpp"

#include <nettle/sha2.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace dlock {

std::string sha256(std::string_view text) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context, digest.size(), digest.data());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const auto byte : digest) {
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }
  return result;
}

std::string checksum(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string normal;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    normal += line.substr(0, line.find_last_not_of(" \t\r") + 1);
    normal += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (normal.ends_with("\n\n")) normal.pop_back();
  return "s1:" + sha256(normal);
}

}  // namespace dlock
