// Which signals a tool takes, and which of them end a wait; that in the race between a grant and a signal the signal
// wins, and for how long the statement under way is waited for then, or a reader of what is said at the end.
#include "waiting.hpp"

#include "terminal.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

namespace dlock::tools {
namespace {

constexpr unsigned exit_grace_s = 1;
constexpr int interrupts_a_second = 20;

// The first signal that came once the signals were given back, or before; 0: none.
std::atomic<int> exit_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // asked by handlers

struct Work {
  Work() {
    if (done < 0) throw std::runtime_error(std::strerror(errno));
  }
  ~Work() { ::close(done); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  bool is_done(int timeout_ms) const {
    pollfd source{done, POLLIN, 0};
    return ::poll(&source, 1, timeout_ms) > 0;
  }

  const int done = ::eventfd(0, EFD_CLOEXEC);
  std::exception_ptr error{};
};

// What is said where this process has to leave in the middle of something.
std::array<char, 256> exit_message{};
std::atomic<std::size_t> length_of_exit_message{0};

void exit_now(int number) {
  const int first = exit_signal.load();
  pollfd errors{STDERR_FILENO, POLLOUT, 0};  // whose reader may not read
  if (const auto length = length_of_exit_message.load(); length > 0 && ::poll(&errors, 1, 0) > 0)
    static_cast<void>(::write(STDERR_FILENO, exit_message.data(), length));
  ::_exit(128 + (first != 0 ? first : number));
}

// Only the first counts: whoever ends a group of processes may send one twice.
void end_soon(int number) {
  int none = 0;
  if (number != 0 && exit_signal.compare_exchange_strong(none, number)) ::alarm(exit_grace_s);
}

// So often that a write which began between two of them does not stay.
void set_interrupts(int times_a_second) {
  itimerval timer{};
  if (times_a_second > 0) timer.it_interval.tv_usec = timer.it_value.tv_usec = 1'000'000 / times_a_second;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

std::atomic<int> interrupts{0};

void interrupt(int number) {
  if (++interrupts > interrupts_a_second) exit_now(number);
}

void begin_interrupts(int number) {
  int none = 0;
  if (exit_signal.compare_exchange_strong(none, number)) set_interrupts(interrupts_a_second);
}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigfillset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

// The next signal that ends a wait, or 0. ^Z stops this process meanwhile.
int ending_signal(int descriptor) {
  signalfd_siginfo info{};
  while (::read(descriptor, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGHUP || number == SIGINT || number == SIGTERM || number == SIGQUIT) return number;
    if (number == SIGTSTP) run::stop_this_process(run::Stop::alone);
  }
  return 0;
}

}  // namespace

Signals::Signals(std::initializer_list<int> also_blocked) {
  sigemptyset(&ignored_);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT}) {
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) sigaddset(&ignored_, number);
  }
  sigset_t set;
  sigemptyset(&set);
  for (const int number :
       {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGCHLD, SIGTSTP, SIGTTOU})
    if (sigismember(&ignored_, number) == 0) sigaddset(&set, number);
  for (const int number : also_blocked) sigaddset(&set, number);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  sigdelset(&set, SIGTTOU);  // blocked, so that the terminal can be taken back from the background; never read
  for (const int number : also_blocked) sigdelset(&set, number);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // if it were ignored, children would vanish without their status
  descriptor_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) throw std::runtime_error(std::strerror(errno));
}

Signals::~Signals() {
  restore();
  ::close(descriptor_);
}

void Signals::restore(int received) const noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    if (sigismember(&ignored_, number) != 0) continue;
    handle(number, end_soon, SA_RESTART);  // what is being written is written on
    sigaddset(&set, number);
  }
  handle(SIGALRM, exit_now, SA_RESTART);
  sigaddset(&set, SIGALRM);
  if (sigismember(&before_, SIGTSTP) == 0) sigaddset(&set, SIGTSTP);
  end_soon(received);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Signals::interrupt_writes() const noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    if (sigismember(&ignored_, number) != 0) continue;
    handle(number, begin_interrupts, 0);
    sigaddset(&set, number);
  }
  handle(SIGALRM, interrupt, 0);
  sigaddset(&set, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

Signals::ExitMessage::ExitMessage(std::string_view line) noexcept {
  length_of_exit_message = line.copy(exit_message.data(), exit_message.size());
}

Signals::ExitMessage::~ExitMessage() { length_of_exit_message = 0; }

int Signals::received() noexcept { return exit_signal.load(); }

void Signals::forget() noexcept {
  set_interrupts(0);
  exit_signal = 0;
}

int wait_and_go_on(const Signals& signals, const std::function<void(std::stop_token)>& task,
                   const std::function<void(int)>& farewell, std::chrono::milliseconds patience) {
  Work work;
  std::jthread thread([&work, &task](const std::stop_token& stop) {
    try {
      task(stop);
    } catch (...) { work.error = std::current_exception(); }
    const std::uint64_t one = 1;
    static_cast<void>(::write(work.done, &one, sizeof one));
  });
  int ended_by = 0;
  while (!work.is_done(0)) {
    std::array<pollfd, 2> sources{pollfd{signals.descriptor(), POLLIN, 0}, pollfd{work.done, POLLIN, 0}};
    ::poll(sources.data(), sources.size(), -1);
    ended_by = ending_signal(signals.descriptor());
    if (ended_by == 0) continue;
    thread.request_stop();
    if (work.is_done(static_cast<int>(patience.count()))) break;
    // What hangs now may be granted yet; then the lock ends with its lease.
    if (farewell) farewell(ended_by);
    ::_exit(128 + ended_by);
  }
  thread.join();
  if (ended_by == 0) ended_by = ending_signal(signals.descriptor());
  if (ended_by == 0 && work.error) std::rethrow_exception(work.error);
  return ended_by;
}

int wait_for(const Signals& signals, const std::function<void(std::stop_token)>& task,
             const std::function<void(int)>& farewell) {
  try {
    const int ended_by = wait_and_go_on(signals, task, [&](int signal) {
      signals.restore(signal);
      if (farewell) farewell(signal);
    });
    signals.restore(ended_by);
    return ended_by;
  } catch (...) {
    signals.restore();
    throw;
  }
}

}  // namespace dlock::tools
