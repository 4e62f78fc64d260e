// This file knows where 128 random bits come from.
#include "types/owner.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace dlock {

std::string random_identity() {
  std::array<unsigned char, 16> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0)
    throw std::system_error(errno, std::generic_category(), "the operating system gives no entropy");
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 0xFU];
  }
  return text;
}

}  // namespace dlock
