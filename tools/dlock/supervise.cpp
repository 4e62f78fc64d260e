// This file knows the order in which a lost lock ends its command: told at the soft deadline, killed at the hard one.
#include "supervise.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <stop_token>

namespace dlock::tools::run {
namespace {

// Now, on the clock that counts suspend: what trust is counted on.
Duration now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::floor<Duration>(std::chrono::nanoseconds{time.tv_nsec});
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {
    if (descriptor < 0) throw std::runtime_error(std::strerror(errno));
  }
  ~Descriptor() { ::close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return descriptor_; }
  void drain() const {
    std::uint64_t count = 0;
    while (::read(descriptor_, &count, sizeof count) < 0 && errno == EINTR) {}
  }

 private:
  int descriptor_;
};

class Watch {
 public:
  Watch(Child& child, const Lock& lock, const Rules& rules, Console& console)
      : child_(child), lock_(lock), rules_(rules), console_(console), started_(now()) {}

  Outcome run() {
    const std::stop_callback ring(lock_.lost(), [this] {
      const std::uint64_t one = 1;
      static_cast<void>(::write(bell_.get(), &one, sizeof one));
    });
    for (;;) {
      heed_clock();  // first, also after a stop of this process: whatever is overdue is done before anything else
      if (look_after_child()) break;
      arm();
      std::array<pollfd, 3> sources{pollfd{rules_.signals, POLLIN, 0}, pollfd{timer_.get(), POLLIN, 0},
                                    pollfd{bell_.get(), POLLIN, 0}};
      if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) throw std::runtime_error(std::strerror(errno));
      heed_clock();
      timer_.drain();
      bell_.drain();
      pass_signals_on();
    }
    if (!lock_.valid()) outcome_.lost = true;  // reaped after the hard deadline
    return outcome_;
  }

 private:
  // Ends the child where it is time, and says why.
  void heed_clock() {
    const auto moment = now();
    if (!lock_.valid() && lock_.loss() == Loss::unconfirmed) {
      // The hard deadline: trust is over, and the lease may be over soon.
      if (!outcome_.lost) lose("could not be renewed in time");
      kill();
      return;
    }
    if (const auto loss = lock_.loss(); loss && !outcome_.lost) {
      lose(*loss == Loss::forced ? "was released by force" : "is somebody else's by now");
      tell(rules_.lost_signal, moment);
    } else if (!outcome_.lost && lock_.remaining() <= rules_.times.kill_after) {
      lose("cannot be renewed");
      tell(rules_.lost_signal, moment);
    }
    if (rules_.max_runtime && !outcome_.overtime && moment - started_ >= *rules_.max_runtime) {
      outcome_.overtime = true;
      console_.note(fmt::format("the command has run for {}: it is ended (--max-runtime)", shown(*rules_.max_runtime)));
      tell(SIGTERM, moment);
    }
    if (kill_at_ && moment >= *kill_at_) kill();
  }

  void lose(std::string_view why) {
    outcome_.lost = true;
    console_.warning(fmt::format("the lock {} (token {}) {}: the command is ended", in_quotes(lock_.name()),
                                 number(lock_.token()), why));
  }

  void tell(int signal, Duration moment) {
    child_.signal(signal);
    if (signal != SIGKILL) child_.signal(SIGCONT);  // a stopped child hears nothing
    if (!kill_at_) kill_at_ = moment + rules_.times.kill_after;
  }

  void kill() {
    if (killed_) return;
    killed_ = true;
    kill_at_.reset();
    child_.signal(SIGKILL);
  }

  // True when it has been reaped.
  bool look_after_child() {
    switch (child_.look()) {
      case Child::News::none: return false;
      case Child::News::stopped:
        child_.stop_together();
        return false;
      case Child::News::ended: outcome_.child = child_.ended(); return true;
    }
    return false;
  }

  // For the next moment at which something is due. Renewals move it on, so it may ring early.
  void arm() {
    const auto moment = now();
    Duration next = Duration::max();
    const auto at = [&](Duration when) { next = std::min(next, when); };
    if (!killed_) {
      const auto trusted = lock_.remaining();
      if (lock_.valid()) at(moment + trusted);
      if (!outcome_.lost) at(moment + std::max(Duration{}, trusted - rules_.times.kill_after));
      if (kill_at_) at(*kill_at_);
      if (rules_.max_runtime && !outcome_.overtime) at(started_ + *rules_.max_runtime);
    }
    itimerspec spec{};
    if (next != Duration::max()) {
      next = std::max(next, Duration{1});
      const auto seconds = std::chrono::floor<std::chrono::seconds>(next);
      spec.it_value.tv_sec = seconds.count();
      spec.it_value.tv_nsec = std::chrono::nanoseconds{next - seconds}.count();
    }
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  void pass_signals_on() {
    signalfd_siginfo info{};
    while (::read(rules_.signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      if (info.ssi_signo != SIGCHLD) child_.signal(static_cast<int>(info.ssi_signo));
  }

  Child& child_;
  const Lock& lock_;
  const Rules& rules_;
  Console& console_;
  const Duration started_;
  const Descriptor timer_{::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)};
  const Descriptor bell_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  Outcome outcome_;
  std::optional<Duration> kill_at_;
  bool killed_ = false;
};

}  // namespace

Outcome supervise(Child& child, const Lock& lock, const Rules& rules, Console& console) {
  return Watch(child, lock, rules, console).run();
}

}  // namespace dlock::tools::run
