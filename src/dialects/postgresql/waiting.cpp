// This file knows how poll(2) waits until a deadline on the clock that counts suspend.
#include "waiting.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace dlock::dialects::DLOCK_DIALECT {

bool wait_for(const PGconn* connection, short events, Deadline deadline) {
  for (;;) {
    int timeout = -1;
    if (deadline != Deadline::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now()).count();
      if (left <= 0) return false;
      timeout = static_cast<int>(std::min<std::int64_t>(left, 60'000));
    }
    pollfd source{PQsocket(connection), events, 0};
    const int ready = ::poll(&source, 1, timeout);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
  }
}

}  // namespace dlock::dialects::DLOCK_DIALECT
