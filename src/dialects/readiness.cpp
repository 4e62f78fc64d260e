// poll(2) over one descriptor, and an eventfd beside it once the wait has become a long one.
#include "dialects/readiness.hpp"

#include "dialects/interrupt.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <stop_token>

namespace dlock::dialects {
namespace {

using std::chrono::milliseconds;

// The kernel's own waiting does not count suspend: it is cut into pieces, so that no deadline is missed by more.
constexpr milliseconds longest_piece{60'000};
// So many pieces of what nobody wants are read without a look at the time.
constexpr int most_at_once = 64;
// Most answers are there by then, and need no descriptor to be told of a stop.
constexpr milliseconds short_wait{5};

short look(int descriptor, short events, milliseconds time) {
  pollfd source{descriptor, events, 0};
  const int ready = ::poll(&source, 1, static_cast<int>(time.count()));
  if (ready < 0 && errno != EINTR) return events;
  return ready > 0 ? source.revents : short{0};
}

// In pieces of at most `piece`.
short wait_in_pieces(int descriptor, short events, const Deadline& deadline, milliseconds piece) {
  while (!deadline.passed()) {
    const auto left =
        std::chrono::ceil<milliseconds>(std::min<BootClock::duration>(deadline.at() - BootClock::now(), longest_piece));
    if (const short has = look(descriptor, events, std::clamp(left, milliseconds{0}, piece)); has != 0) return has;
  }
  return 0;
}

}  // namespace

short wait_until_ready(int descriptor, short events, const Deadline& deadline) {
  if (!deadline.stop().stop_possible() || planted("statement_deaf_to_stop"))
    return wait_in_pieces(descriptor, events, deadline, longest_piece);
  const auto soon = deadline.no_later_than(later(BootClock::now(), short_wait));
  if (const short has = wait_in_pieces(descriptor, events, soon, short_wait); has != 0) return has;
  try {
    Interrupt interrupt;
    const std::stop_callback stopped(deadline.stop(), [&] { interrupt.raise(); });
    while (!deadline.passed()) {
      if (interrupt.wait(descriptor, events, deadline) != Interrupt::Ended::ready) continue;
      const short has = look(descriptor, events, milliseconds{0});
      return has != 0 ? has : events;
    }
    return 0;
  } catch (const Failure&) {  // no descriptor is to be had
    return wait_in_pieces(descriptor, events, deadline, short_wait);
  }
}

Unasked look_at_rest(int descriptor) noexcept {
  pollfd source{descriptor, POLLIN | POLLRDHUP, 0};
  if (::poll(&source, 1, 0) <= 0 || planted("ended_connection_used")) return Unasked::nothing;
  return (source.revents & ~POLLIN) != 0 ? Unasked::ended : Unasked::said_something;
}

bool drain(int descriptor, const Deadline& deadline) noexcept {
  if (planted("unanswered_not_awaited")) return true;
  ::shutdown(descriptor, SHUT_WR);
  std::array<char, 4096> unwanted;
  for (int pieces = 1;; ++pieces) {
    const auto read = ::recv(descriptor, unwanted.data(), unwanted.size(), MSG_DONTWAIT);
    if (read == 0 || (read < 0 && errno != EAGAIN && errno != EINTR)) return true;
    if ((read < 0 || pieces % most_at_once == 0) && deadline.passed()) return false;
    if (read < 0) wait_in_pieces(descriptor, POLLIN, deadline, longest_piece);
  }
}

}  // namespace dlock::dialects
