// This file knows the timerfd behind the end of trust. A renewal does not touch the timer: when it fires early, the
// grant is put back to where its trust ends now.
#include "engine/trust_timer.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <vector>

namespace dlock::engine {
namespace {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor(int descriptor, const char* what) : descriptor_(descriptor) {
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  }
  ~Descriptor() { ::close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

void drain(int descriptor) {
  std::uint64_t count = 0;
  while (::read(descriptor, &count, sizeof count) < 0 && errno == EINTR) {}
}

}  // namespace

struct TrustTimer::State {
  explicit State(std::shared_ptr<Reporter> news) : reporter(std::move(news)) {}
  const std::shared_ptr<Reporter> reporter;
  const Descriptor timer{::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create"};
  const Descriptor bell{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd"};
  std::mutex mutex;
  // Guarded by mutex:
  Schedule schedule;
  Instant armed = Instant::max();
  bool closing = false;

  void place(const std::shared_ptr<Held>& held) {
    held->in_timer = schedule.emplace(held->trusted_until(), held);
    if (held->trusted_until() < armed) arm(held->trusted_until());
  }

  void arm(Instant at) {
    armed = at;
    itimerspec spec{};
    if (at != Instant::max()) {
      const auto since = at.time_since_epoch();
      const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
      spec.it_value.tv_sec = seconds.count();
      spec.it_value.tv_nsec = (since - seconds).count();
      if (spec.it_value.tv_sec == 0 && spec.it_value.tv_nsec == 0) spec.it_value.tv_nsec = 1;
    }
    ::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  // Takes out what has run out by now; what was renewed meanwhile goes back in.
  std::vector<std::shared_ptr<Held>> run_out() {
    std::vector<std::shared_ptr<Held>> over;
    const std::lock_guard guard(mutex);
    const auto now = BootClock::now();
    while (!schedule.empty() && schedule.begin()->first <= now) {
      auto held = std::move(schedule.begin()->second);
      schedule.erase(schedule.begin());
      held->in_timer.reset();
      if (held->trusted_until() > now) held->in_timer = schedule.emplace(held->trusted_until(), held);
      else over.push_back(std::move(held));
    }
    arm(schedule.empty() ? Instant::max() : schedule.begin()->first);
    return over;
  }

  void run() {
    for (;;) {
      std::array<pollfd, 2> sources{pollfd{timer.get(), POLLIN, 0}, pollfd{bell.get(), POLLIN, 0}};
      ::poll(sources.data(), sources.size(), -1);
      drain(timer.get());
      drain(bell.get());
      {
        const std::lock_guard guard(mutex);
        if (closing) return;
      }
      for (auto& held : run_out())
        if (held->lose(Loss::unconfirmed))
          reporter->tell_loss(std::move(held), "trust ran out before a renewal was confirmed");
    }
  }
};

TrustTimer::TrustTimer(std::shared_ptr<Reporter> reporter) : state_(std::make_shared<State>(std::move(reporter))) {}

TrustTimer::~TrustTimer() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->closing = true;
  }
  const std::uint64_t one = 1;
  static_cast<void>(::write(state_->bell.get(), &one, sizeof one));
}

void TrustTimer::watch(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  if (held->in_timer) state_->schedule.erase(*held->in_timer);
  state_->place(held);
  if (!thread_.started()) thread_.start([state = state_] { state->run(); });
}

void TrustTimer::forget(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  if (!held->in_timer) return;
  state_->schedule.erase(*held->in_timer);
  held->in_timer.reset();
}

}  // namespace dlock::engine
