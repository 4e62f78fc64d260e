// This file knows the timerfd(CLOCK_BOOTTIME) behind every sleep of the engine's own threads.
#include "engine/alarm.hpp"

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

// Every alarm of the process. Never destroyed: an engine may outlive what is static here.
struct All {
  All() { keep_free_at_fork({&mutex, 1}); }
  std::mutex mutex;
  std::vector<Alarm*> alarms;  // guarded by mutex
};

All& all() {
  static All& alarms = *new All;
  return alarms;
}
[[maybe_unused]] const All& made_when_loaded = all();  // so that no fork() comes in between

void drain(int descriptor) noexcept {
  std::uint64_t count = 0;
  while (::read(descriptor, &count, sizeof count) < 0 && errno == EINTR) {}
}

}  // namespace

Alarm::Alarm() {
  timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_ < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  bell_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (bell_ < 0) {
    const int error = errno;
    ::close(timer_);
    throw std::system_error(error, std::generic_category(), "eventfd");
  }
  const std::lock_guard guard(all().mutex);
  all().alarms.push_back(this);
}

Alarm::~Alarm() {
  {
    const std::lock_guard guard(all().mutex);
    std::erase(all().alarms, this);
  }
  ::close(timer_);
  ::close(bell_);
}

void Alarm::set(Instant at) {
  itimerspec spec{};
  if (at != Instant::max()) {
    const auto since = std::max(BootClock::of_the_kernel(at).time_since_epoch(), BootClock::duration{1});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = (since - seconds).count();
  }
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Alarm::ring() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(::write(bell_, &one, sizeof one));
}

void Alarm::wait() noexcept {
  std::array<pollfd, 2> sources{pollfd{timer_, POLLIN, 0}, pollfd{bell_, POLLIN, 0}};
  ::poll(sources.data(), sources.size(), -1);
  drain(timer_);
  drain(bell_);
}

void Alarm::ring_all() noexcept {
  const std::lock_guard guard(all().mutex);
  for (auto* const alarm : all().alarms) alarm->ring();
}

}  // namespace dlock::engine
