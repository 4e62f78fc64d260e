// The command line of the demo.
#include "roles.hpp"

#include <dlock/dlock.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace demo {

long long now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
}

void sleep_until_us(long long moment) {
  const timespec until{static_cast<time_t>(moment / 1'000'000), static_cast<long>(moment % 1'000'000 * 1000)};
  while (::clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr) == EINTR) {}
}

}  // namespace demo

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const char* url = std::getenv("DLOCK_URL");
  try {
    if (arguments.empty() && url != nullptr) return demo::conductor(url);
    if (arguments.size() == 3 && arguments[0] == "replica" && url != nullptr)
      return demo::replica(url, arguments[1], std::stoll(arguments[2]));
    std::fputs(
        "usage: DLOCK_URL=… dlock-demo\n"
        "Three replicas share the job order_task in the database DLOCK_URL, whose lock table must exist (dlock-migrate "
        "up).\n"
        "The demo's own tables there, order_task_*, are made anew.\n",
        stderr);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dlock-demo: %s\n", error.what());
    return 1;
  }
}
