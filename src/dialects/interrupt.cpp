// ppoll(2) over a descriptor and an eventfd, until a deadline on the clock that counts suspend.
#include "dialects/interrupt.hpp"

#include "types/failure.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace dlock::dialects {
namespace {

// The kernel's own waiting does not count suspend: it is cut into pieces, so that no deadline is missed by more.
constexpr std::chrono::nanoseconds longest_piece = std::chrono::minutes{1};

}  // namespace

Interrupt::Interrupt() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (event_ < 0)
    throw Failure(Cause::refused, "no descriptor to wait with: " + std::generic_category().message(errno));
}

Interrupt::~Interrupt() { ::close(event_); }

void Interrupt::raise() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(::write(event_, &one, sizeof one));
}

Interrupt::Ended Interrupt::wait(int descriptor, short events, Deadline until) {
  for (;;) {
    const auto now = BootClock::now();
    const auto piece = now >= until.at() ? std::chrono::nanoseconds{0}
                                         : std::min<std::chrono::nanoseconds>(until.at() - now, longest_piece);
    const auto seconds = std::chrono::floor<std::chrono::seconds>(piece);
    timespec timeout{};
    timeout.tv_sec = seconds.count();
    timeout.tv_nsec = (piece - seconds).count();
    std::array<pollfd, 2> sources{pollfd{event_, POLLIN, 0}, pollfd{descriptor, events, 0}};
    const int ready = ::ppoll(sources.data(), sources.size(), &timeout, nullptr);
    if (ready < 0 && errno != EINTR) return Ended::ready;  // whoever uses the descriptor will be told what is wrong
    if (ready > 0 && sources[1].revents != 0) return Ended::ready;
    if (ready > 0 && sources[0].revents != 0) {
      std::uint64_t count = 0;
      static_cast<void>(::read(event_, &count, sizeof count));
      return Ended::interrupted;
    }
    if (ready == 0 && BootClock::now() >= until.at()) return Ended::late;
  }
}

}  // namespace dlock::dialects
