// How a run talks to its guardian, and does without one that was killed.
#include "child.hpp"

#include "boot_clock.hpp"
#include "guardian.hpp"
#include "processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace dlock::tools::run {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe", errno);
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int take(std::size_t end) { return std::exchange(ends[end], -1); }
  std::array<int, 2> ends{-1, -1};
};

std::int64_t nanoseconds_of(Duration moment) {
  constexpr auto longest = std::chrono::floor<Duration>(std::chrono::nanoseconds::max());
  return std::chrono::nanoseconds{std::min(moment, longest)}.count();
}

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

}  // namespace

Child::Child(const Command& command) {
  open_processes();
  Pipe orders, reports;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // if the guardian is killed, its processes come here
  guardian_ = ::fork();
  if (guardian_ < 0) fail("fork", errno);
  if (guardian_ == 0) {
    ::close(orders.take(1));  // so that its end is this process's end
    ::close(reports.take(0));
    ::fcntl(reports.ends[1], F_SETFL, O_NONBLOCK);  // it never waits for a run that is stopped
    guard(command, orders.ends[0], reports.ends[1]);
  }
  ::setpgid(guardian_, guardian_);
  orders_ = orders.take(1);
  reports_ = reports.take(0);
}

Child::~Child() { finish(Rest::killed); }

bool Child::send(const void* bytes, std::size_t size) const noexcept {
  ssize_t count = 0;
  while ((count = ::write(orders_, bytes, size)) < 0 && errno == EINTR) {}
  return count == static_cast<ssize_t>(size);
}

void Child::start(const Settings& settings, bool in_foreground, Duration deadline) {
  std::string block;
  for (const auto& setting : settings) block += setting + '\0';
  deadline_ = nanoseconds_of(deadline);
  const StartOrder order{deadline_, static_cast<std::uint32_t>(block.size()), in_foreground ? 1U : 0U};
  run::ChildReport report;
  // The command cannot be left to a guardian that does not answer.
  started_ = true;
  ::kill(guardian_, SIGCONT);
  const bool sent = send(&order, sizeof order) && send(block.data(), block.size());
  pollfd source{reports_, POLLIN, 0};
  const auto patience = std::chrono::ceil<std::chrono::milliseconds>(std::max(deadline - boot_now(), Duration{}));
  if (!sent || ::poll(&source, 1, static_cast<int>(std::min<std::int64_t>(patience.count(), 60'000))) <= 0 ||
      ::read(reports_, &report, sizeof report) != static_cast<ssize_t>(sizeof report))
    throw std::runtime_error("the guardian of the command does not answer: was it killed?");
  group_ = report.value;
  if (group_ < 0) fail("the command could not be started", report.error);
  ::fcntl(orders_, F_SETFL, O_NONBLOCK);
  ::fcntl(reports_, F_SETFL, O_NONBLOCK);
}

void Child::is_to_be_dead_at(Duration deadline) noexcept {
  const auto order = nanoseconds_of(deadline);
  constexpr std::int64_t noise = 1'000'000;  // from reading the clock twice
  if (std::abs(order - deadline_) < noise || !guarded_) return;
  if (send(&order, sizeof order)) deadline_ = order;  // the pipe is full only if the guardian is stopped
}

void Child::signal(int number) const noexcept {
  if (group_ > 0) ::kill(-group_, number);
  if (number == SIGKILL && guardian_ > 0) ::kill(guardian_, SIGCONT);  // its report is waited for
}

void Child::signal_command(int number) const noexcept {
  if (group_ > 0) ::kill(group_, number);
}

bool Child::group_lives() const { return run::group_lives(group_); }
bool Child::group_is_stopped() const { return run::group_is_stopped(group_); }
bool Child::group_heeds(std::uint64_t signals) const { return run::group_heeds(group_, signals); }

Child::Change Child::look() {
  if (!guarded_) return look_without_guardian();
  // Somebody has stopped it alone. It would neither tell how the command ends nor end it.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(guardian_), &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0)
    ::kill(guardian_, SIGCONT);
  for (;;) {
    run::ChildReport report;
    const auto count = ::read(reports_, &report, sizeof report);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Change::none;
    if (count == static_cast<ssize_t>(sizeof report)) {
      if (report.kind == run::ChildReport::Kind::stopped) {
        stopped_by_ = report.value;
        return Change::stopped;
      }
      ended_ = {report.value, report.signal, report.error, report.at_deadline != 0};
      reported_ = true;
      return Change::ended;
    }
    guarded_ = false;
    signal(SIGKILL);
    while (::waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {}  // now its children are this process's
    guardian_ = -1;
    return look_without_guardian();
  }
}

// The command stays unreaped, as the guardian would leave it: what it has left is killed next, in any case.
Child::Change Child::look_without_guardian() {
  if (reported_) return Change::none;
  siginfo_t info{};
  const bool known = ::waitid(P_PID, static_cast<id_t>(group_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (known && info.si_pid == 0) return Change::none;
  reported_ = true;
  const bool exited = known && info.si_code == CLD_EXITED;
  ended_.signal = exited ? 0 : known ? info.si_status : SIGKILL;
  ended_.status = exited ? info.si_status : 128 + ended_.signal;
  return Change::ended;
}

void Child::finish(Rest rest) noexcept {
  if (orders_ < 0) return;
  if (rest == Rest::left_alone) send(&dismissal, sizeof dismissal);
  close_if_open(orders_);
  if (guardian_ > 0) {
    ::kill(guardian_, SIGCONT);
    while (::waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {}
  }
  if (rest == Rest::killed && started_) kill_all(group_);
  close_if_open(reports_);
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
  group_ = -1;
}

}  // namespace dlock::tools::run
