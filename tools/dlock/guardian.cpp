// The guardian: kill at the deadline, and when the run is gone without having dismissed it; pass on how the command
// ended. Which processes that are: processes.cpp.
#include "guardian.hpp"

#include "boot_clock.hpp"
#include "processes.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>

namespace dlock::tools::run {
namespace {

constexpr int failed = 125;

[[noreturn]] void leave(int code = 0) { ::_exit(code); }

// False: the other side is gone.
bool read_all(int descriptor, void* bytes, std::size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const auto count = ::read(descriptor, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool readable(int descriptor) {
  pollfd source{descriptor, POLLIN, 0};
  return ::poll(&source, 1, 0) > 0;
}

Duration moment_of(std::int64_t nanoseconds) {
  return std::chrono::floor<Duration>(std::chrono::nanoseconds{nanoseconds});
}

class Guardian {
 public:
  Guardian(const Command& command, int orders, int reports) : command_(command), orders_(orders), reports_(reports) {
    ::prctl(PR_SET_NAME, "dlock-guardian");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::setpgid(0, 0);
    open_processes();
    sigset_t set;
    sigfillset(&set);
    ::sigprocmask(SIG_SETMASK, &set, nullptr);  // nothing but SIGKILL and SIGSTOP reaches it
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    signals_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (signals_ < 0 || timer_ < 0) leave(failed);
  }

  [[noreturn]] void run() {
    start();
    for (;;) {
      take_orders();  // before the clock is looked at: a deadline that was moved on is true however late it is read
      if (abandoned_) {
        kill_all(child_.pid);
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
        leave();
      }
      if (!killed_ && boot_now() >= deadline_) {
        killed_ = true;
        kill_all(child_.pid);
      }
      look_after_child();
      wait();
    }
  }

 private:
  void start() {
    StartOrder order;
    if (!read_all(orders_, &order, sizeof order)) leave();
    std::string block(order.settings_size, '\0');
    if (!read_all(orders_, block.data(), block.size())) leave();
    Settings settings;
    for (std::size_t at = 0; at < block.size(); at = block.find('\0', at) + 1)
      settings.emplace_back(block.c_str() + at);
    command_.in_foreground = order.in_foreground != 0;
    deadline_ = moment_of(order.deadline);
    // It may have been stopped since that was written.
    if (readable(orders_)) take_orders();
    if (abandoned_) leave();
    if (boot_now() >= deadline_) child_.error = ETIME;
    else child_ = launch(command_, settings);
    send({ChildReport::Kind::started, child_.pid, 0, child_.error});
    if (child_.pid < 0) leave(failed);
  }

  void take_orders() {
    while (readable(orders_)) {
      std::int64_t order = 0;
      if (!read_all(orders_, &order, sizeof order)) {
        abandoned_ = true;
        return;
      }
      if (order == dismissal) leave();
      deadline_ = moment_of(order);
    }
  }

  // What the command left behind is reaped here, too. The command itself is not: as long as it is a zombie, its number,
  // which is its group's, cannot be another's. But where the kernel alone can be asked whether the group lives, nobody
  // may be left there who does not: its number is its own then as long as there is anybody in it.
  void look_after_child() {
    look_for_changes();
    while (ended_ && !processes_are_known() && ::waitpid(-1, nullptr, WNOHANG) > 0) {}
  }

  void look_for_changes() {
    while (!ended_) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
      const bool end = info.si_code != CLD_STOPPED && info.si_code != CLD_TRAPPED;
      if (info.si_pid == child_.pid && end) {
        child_has_ended(info);
        return;
      }
      if (info.si_pid == child_.pid) send({ChildReport::Kind::stopped, info.si_status});
      // It may have gone on since, and ended: that is the next report, and must not be taken with this.
      siginfo_t taken{};
      ::waitid(P_PID, static_cast<id_t>(info.si_pid), &taken,
               (info.si_pid == child_.pid ? 0 : WEXITED) | WSTOPPED | WNOHANG);
    }
  }

  void child_has_ended(const siginfo_t& info) {
    ended_ = true;
    ChildReport report{ChildReport::Kind::ended, info.si_status};
    if (info.si_code != CLD_EXITED) {
      report.signal = info.si_status;
      report.value = 128 + info.si_status;
    }
    int error = 0;
    if (::read(child_.report, &error, sizeof error) == static_cast<ssize_t>(sizeof error)) report.error = error;
    report.at_deadline = killed_ ? 1 : 0;
    send(report);
  }

  // The pipe is full where a run that is stopped has not read of thousands of stops: of the next one it need not hear.
  void send(const ChildReport& report) {
    const bool sent = ::write(reports_, &report, sizeof report) == static_cast<ssize_t>(sizeof report);
    unsent_.reset();
    if (!sent && errno == EAGAIN && report.kind == ChildReport::Kind::ended) unsent_ = report;
  }

  void wait() {
    ring_at(timer_, killed_ ? Duration::max() : deadline_);
    std::array<pollfd, 4> sources{pollfd{orders_, POLLIN, 0}, pollfd{timer_, POLLIN, 0}, pollfd{signals_, POLLIN, 0},
                                  pollfd{unsent_ ? reports_ : -1, POLLOUT, 0}};
    ::poll(sources.data(), sources.size(), -1);
    if (const auto report = unsent_) send(*report);
    signalfd_siginfo signal{};
    while (::read(signals_, &signal, sizeof signal) > 0) {}
  }

  Command command_;
  const int orders_, reports_;
  int signals_ = -1, timer_ = -1;
  Launched child_;
  Duration deadline_{};
  bool abandoned_ = false, killed_ = false, ended_ = false;
  std::optional<ChildReport> unsent_;  // the last one
};

}  // namespace

void guard(const Command& command, int orders, int reports) noexcept { Guardian(command, orders, reports).run(); }

}  // namespace dlock::tools::run
