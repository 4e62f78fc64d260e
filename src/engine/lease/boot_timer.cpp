// The timerfd(CLOCK_BOOTTIME) behind every sleep of the engine's own threads.
#include "engine/lease/boot_timer.hpp"

#include "types/process.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <vector>

namespace dlock::engine {
namespace {

// Every timer of the process. Never destroyed: an engine may outlive what is static here.
struct All {
  All() { keep_free_at_fork({&mutex, 1}); }
  AnnotatedMutex mutex;
  std::vector<BootTimer*> timers GUARDED_BY(mutex);
};

All& all() {
  static All& timers = *new All;
  return timers;
}
[[maybe_unused]] const All& made_when_loaded = all();  // so that no fork() comes in between

void drain(int descriptor) noexcept {
  std::uint64_t count = 0;
  while (::read(descriptor, &count, sizeof count) < 0 && errno == EINTR) {}
}

}  // namespace

BootTimer::BootTimer() {
  timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_ < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  listener_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (listener_ < 0) {
    const int error = errno;
    ::close(timer_);
    throw std::system_error(error, std::generic_category(), "eventfd");
  }
  const MutexLock guard(all().mutex);
  all().timers.push_back(this);
}

BootTimer::~BootTimer() {
  {
    const MutexLock guard(all().mutex);
    std::erase(all().timers, this);
  }
  ::close(timer_);
  ::close(listener_);
}

void BootTimer::set(Instant at) {
  itimerspec spec{};
  if (at != Instant::max()) {
    const auto since = std::max(BootClock::of_the_kernel(at).time_since_epoch(), BootClock::duration{1});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = (since - seconds).count();
  }
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void BootTimer::wake() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(::write(listener_, &one, sizeof one));
}

void BootTimer::wait() noexcept {
  std::array<pollfd, 2> sources{pollfd{timer_, POLLIN, 0}, pollfd{listener_, POLLIN, 0}};
  ::poll(sources.data(), sources.size(), -1);
  drain(timer_);
  drain(listener_);
}

void BootTimer::wake_all() noexcept {
  const MutexLock guard(all().mutex);
  for (auto* const timer : all().timers) timer->wake();
}

}  // namespace dlock::engine
