// The first packet of the protocol.
#include "greeting.hpp"

#include "dialects/readiness.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace dlock::dialects::mysql {
namespace {

constexpr std::size_t header = 4, after_version = 4 + 8 + 1;  // thread id, scramble, filler
constexpr unsigned tls_capability = 0x0800;
constexpr unsigned protocol = 10, error = 255;
constexpr std::size_t longest = 1024;  // of what is looked at; greetings have about 100 bytes

unsigned byte_at(std::string_view bytes, std::size_t at) { return static_cast<unsigned char>(bytes[at]); }

}  // namespace

Greeting read_greeting(std::string_view bytes) {
  if (bytes.size() <= header) return Greeting::incomplete;
  if (byte_at(bytes, header) == error) return Greeting::refusal;
  if (byte_at(bytes, header) != protocol) return Greeting::without_tls;
  const auto version_end = bytes.find('\0', header + 1);
  const auto flags_at = version_end + 1 + after_version;
  if (version_end == std::string_view::npos || bytes.size() < flags_at + 2)
    return bytes.size() < longest ? Greeting::incomplete : Greeting::without_tls;
  const auto flags = byte_at(bytes, flags_at) | byte_at(bytes, flags_at + 1) << 8U;
  return (flags & tls_capability) != 0 ? Greeting::offers_tls : Greeting::without_tls;
}

Greeting peek_greeting(int socket, Deadline deadline) {
  std::array<char, longest> buffer{};
  std::size_t seen = 0;
  for (;;) {
    // A part that is already there would end every wait at once: look for the rest of it in small steps.
    const auto step = later(BootClock::now(), std::chrono::milliseconds{1});
    const auto until = seen == 0 ? deadline : deadline.no_later_than(step);
    const short has = wait_until_ready(socket, seen == 0 ? POLLIN : short{0}, until);
    if (has == 0 && deadline.passed()) return Greeting::incomplete;
    const auto count = ::recv(socket, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
    if (count == 0) return Greeting::incomplete;
    if (count < 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      return Greeting::incomplete;
    }
    seen = static_cast<std::size_t>(count);
    const auto greeting = read_greeting({buffer.data(), seen});
    if (greeting != Greeting::incomplete) return greeting;
    if ((has & (POLLHUP | POLLERR)) != 0) return Greeting::incomplete;
  }
}

}  // namespace dlock::dialects::mysql
