// Where 128 random bits come from.
#include "types/owner.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace dlock {

Identity::Identity() {
  std::array<unsigned char, 16> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0)
    throw std::system_error(errno, std::generic_category(), "the operating system gives no entropy");
  constexpr std::string_view digits = "0123456789abcdef";
  auto* to = digits_.data();
  for (const unsigned char byte : bytes) {
    *to++ = digits[byte >> 4U];
    *to++ = digits[byte & 0xFU];
  }
}

}  // namespace dlock
