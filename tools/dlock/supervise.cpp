// The order in which a lost lock ends its command: told at the soft deadline, killed at the hard one; how signals and
// ^Z reach the command, and when it is told that somebody waits (--yield-signal).
#include "supervise.hpp"

#include "boot_clock.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <stdexcept>
#include <stop_token>

namespace dlock::tools::run {
namespace {

// How often a group is looked at whose first process is gone: nobody tells when the last one goes.
constexpr Duration look_again = std::chrono::milliseconds{10};
// And how often when that takes longer than this.
constexpr Duration slow_end = std::chrono::seconds{1}, look_seldom = std::chrono::milliseconds{100};

// What a renewal takes, on most days.
constexpr Duration latency = std::chrono::milliseconds{5};

void drain(int descriptor) {
  std::uint64_t count = 0;
  while (::read(descriptor, &count, sizeof count) < 0 && errno == EINTR) {}
}

class Watch {
 public:
  Watch(Child& child, const HeldLocks& locks, const Terminal& terminal, const Rules& rules, int signals,
        const Wakers& wakers, Console& console)
      : child_(child),
        locks_(locks),
        terminal_(terminal),
        rules_(rules),
        signals_(signals),
        timer_(wakers.timer()),
        listener_(wakers.listener()),
        console_(console) {}

  Outcome run() {
    const auto wake = [this] {
      const std::uint64_t one = 1;
      static_cast<void>(::write(listener_, &one, sizeof one));
    };
    std::list<std::stop_callback<decltype(wake)>> heard;
    for (const auto& lock : locks_.all()) {
      heard.emplace_back(lock.lost(), wake);
      if (rules_.yield_signal) heard.emplace_back(lock.asked(), wake);
    }
    for (;;) {
      heed_clock();  // before anything else, so that after a stop of this process what is overdue comes first
      look_after_child();
      if (reaped_ && !group_is_ending()) break;
      if (reaped_) look_after_rest();
      if (rules_.yield_signal) heed_those_who_wait();
      arm();
      // Without a guardian the command's end comes as SIGCHLD.
      std::array<pollfd, 4> sources{pollfd{signals_, POLLIN, 0}, pollfd{timer_, POLLIN, 0},
                                    pollfd{listener_, POLLIN, 0},
                                    pollfd{child_.guarded() ? child_.reports() : -1, POLLIN, 0}};
      if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR)
        throw std::runtime_error(std::strerror(errno));
      heed_clock();
      drain(timer_);
      drain(listener_);
      pass_signals_on();
    }
    terminal_.take_back(child_.group());
    const bool end_all = killed_ || outcome_.lost || outcome_.overtime;
    child_.finish(end_all ? Child::Rest::killed : Child::Rest::left_alone);
    const bool taken_back = end_all && terminal_.take_back_from_the_dead();
    if (killed_ || taken_back) terminal_.restore_modes();
    return outcome_;
  }

 private:
  // Ends the child where it is time, says why, and lets the guardian know when it is to be dead.
  void heed_clock() {
    heed_lock_and_runtime();
    tell_guardian();
  }

  void tell_guardian() const {
    child_.is_to_be_dead_at(kill_at_ ? std::min(*kill_at_, trusted_until_) : trusted_until_);
  }

  void heed_lock_and_runtime() {
    const auto moment = boot_now();
    const auto& lock = locks_.weakest();
    const bool valid = lock.valid();
    if (valid) trusted_until_ = after(moment, lock.remaining());
    if (!valid && (moment >= trusted_until_ || lock.loss() == Loss::unconfirmed)) {
      // The hard deadline. After a stop of this process, whatever the database has said meanwhile.
      kill();
      lose(lock, "could not be renewed in time");
      return;
    }
    if (!valid) {
      if (!losing_) tell(rules_.lost_signal, moment);
      lose(lock, lock.loss() == Loss::forced ? "was released by force" : "is no longer ours");
    } else if (!losing_ && trusted_until_ - moment <= rules_.times.kill_after) {
      tell(rules_.lost_signal, moment);
      lose(lock, "cannot be renewed");
    }
    if (rules_.max_runtime && !overran_ && (!reaped_ || ending_ != 0) &&
        moment >= after(started_, *rules_.max_runtime)) {
      overran_ = true;
      outcome_.overtime = !reaped_;
      tell(SIGTERM, moment);
      console_.note(fmt::format("{} for {}: it is ended (--max-runtime)",
                                reaped_ ? "what the command has left has run on" : "the command has run",
                                shown(*rules_.max_runtime)));
    }
    if (kill_at_ && moment >= *kill_at_) kill();
  }

  // Once the child is reaped, only what came before counts; the rest of its group is no reason for another exit code.
  void lose(const Lock& lock, std::string_view why) {
    if (losing_) return;
    losing_ = true;
    outcome_.lost = !reaped_;
    console_.warning(fmt::format("the lock {} (token {}) {}: {} is ended", in_quotes(lock.name()), number(lock.token()),
                                 why, reaped_ ? "what is left of the command" : "the command"));
  }

  void tell(int signal, Duration moment) {
    if (reaped_ && ending_ == 0) return;
    child_.signal(signal);
    if (signal != SIGKILL) child_.signal(SIGCONT);  // a stopped child hears nothing
    if (!kill_at_) kill_at_ = after(moment, rules_.times.kill_after);
    tell_guardian();  // before anything is said
  }

  // Once. What is to end anyway is not asked.
  void heed_those_who_wait() {
    if (yielding_ || reaped_ || kill_at_ || killed_) return;
    const auto all = locks_.all();
    const auto asked = std::ranges::find_if(all, [](const Lock& lock) { return lock.asked().stop_requested(); });
    if (asked == all.end()) return;
    yielding_ = true;
    child_.signal_command(*rules_.yield_signal);
    console_.detail(
        fmt::format("somebody waits for the lock {}: the command is told (--yield-signal)", in_quotes(asked->name())));
  }

  void kill() {
    if (killed_) return;
    killed_ = true;
    child_.signal(SIGKILL);
  }

  void look_after_child() {
    const auto change = child_.look();
    if (!child_.guarded() && !killed_) {
      killed_ = true;
      console_.warning("the guardian of the command was killed: the command is killed, too");
    }
    switch (change) {
      case Child::Change::none: return;
      case Child::Change::stopped: child_stopped(); return;
      case Child::Change::ended:
        outcome_.child = child_.ended();
        pass_signals_on();  // that came first, and may have ended it
        // The guardian may not have known of the last renewal; then it was all too late.
        if (const auto& lock = locks_.weakest(); !lock.valid() || (outcome_.child.at_deadline && !kill_at_))
          lose(lock, "was lost before the command had ended");
        reaped_at_ = boot_now();
        what_ended_it();
        reaped_ = true;
        if (losing_ && !kill_at_) tell(rules_.lost_signal, reaped_at_);
        if (ending_ != 0) child_.signal(SIGCONT);  // who is stopped has heard nothing yet
        terminal_.take_back(child_.group());
    }
  }

  // Nobody tells what becomes of the others of its group: that ^Z has stopped them, or that they want the terminal.
  void look_after_rest() {
    if (!child_.group_is_stopped()) return;
    if (terminal_.is_of(child_.group())) {
      terminal_.take_back(child_.group());
      stop_this_process(Stop::with_its_group);
      heed_clock();
    }
    if (killed_ || !terminal_.is_ours()) return;
    terminal_.give(child_.group());
    child_.signal(SIGCONT);
  }

  static std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

  // Many a command goes on after a HUP or an INT, and ends of its own accord. What the terminal sends to the command
  // alone is known by its end: ^C, and that the terminal is gone.
  void what_ended_it() {
    const auto& child = outcome_.child;
    const int by = child.status - 128;
    const bool yielded = yielding_ && by == *rules_.yield_signal;
    if ((by == SIGINT || by == SIGQUIT) && !yielded && (told_ & bit(by)) == 0 && terminal_.is_of(child_.group())) {
      told_ |= bit(by);
      typed_ = by;
    } else if (typed_ != 0) {
      outcome_.heard = Heard::by_its_group;
    }
    if (child.signal == SIGHUP && !yielded) told_ |= bit(SIGHUP);
    if (child.signal != 0 && child.signal == typed_) outcome_.typed = typed_;
    ending_ = told_ & (bit(SIGTERM) | (by > 0 && by <= 64 ? bit(by) : 0));
  }

  // A group that was told to end may be longer about it than its first process: a shell is gone at once, and what it
  // has started tidies up.
  bool group_is_ending() {
    if (killed_ || (!kill_at_ && ending_ == 0)) return false;
    const bool all = kill_at_ || (ending_ & bit(SIGTERM)) != 0;
    if (!(all ? child_.group_lives() : child_.group_heeds(ending_))) return false;
    if (!kill_at_ && !said_ && boot_now() - reaped_at_ > slow_end) {
      said_ = true;
      console_.note("the command has ended; what is left of its process group was told to end, too, and is waited for");
    }
    return true;
  }

  void child_stopped() {
    const int by = child_.stopped_by();
    const bool wants_terminal = by == SIGTTIN || by == SIGTTOU;
    if (wants_terminal && terminal_.is_ours()) {  // put into the foreground meanwhile
      terminal_.give(child_.group());
      child_.signal(SIGCONT);
      return;
    }
    const bool has_terminal = terminal_.is_of(child_.group());
    if (!wants_terminal && !has_terminal && !stop_asked_) return;  // somebody has stopped the child alone
    stop_asked_ = false;
    if (!kill_at_) {
      terminal_.take_back(child_.group());
      stop_this_process(has_terminal ? Stop::with_its_group : Stop::alone);
      heed_clock();
    }
    if (killed_) return;
    if (terminal_.is_ours()) terminal_.give(child_.group());
    child_.signal(SIGCONT);
  }

  // Nobody tells of a renewal. It is looked for when it should have come, then ever again; near the deadline often, so
  // that the guardian does not know less than this process.
  Duration next_look() const {
    const auto& times = rules_.times;
    const auto moment = boot_now();
    const auto expected = trusted_until_ - (times.ttl - times.safety) + times.renew_every + latency;
    const auto again = std::max(expected, moment + times.renew_every / 20);
    return std::max(std::min(again, moment + (trusted_until_ - moment) / 2), moment + look_again);
  }

  // For the next moment at which something is due. Renewals move it on, so it may expire early.
  void arm() {
    Duration next = Duration::max();
    const auto at = [&](Duration when) { next = std::min(next, when); };
    if (!killed_) {
      const bool valid = locks_.weakest().valid();
      if (valid) at(trusted_until_);
      if (valid) at(next_look());
      if (valid && !losing_) at(trusted_until_ - rules_.times.kill_after);
      if (kill_at_) at(*kill_at_);
      if (rules_.max_runtime && !overran_ && (!reaped_ || ending_ != 0)) at(after(started_, *rules_.max_runtime));
      if (reaped_) at(boot_now() + (boot_now() - reaped_at_ > slow_end ? look_seldom : look_again));
    }
    ring_at(timer_, next);
  }

  void pass_signals_on() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) continue;
      if (number == SIGTSTP || number == SIGCONT) stop_asked_ = number == SIGTSTP;
      const bool ends = number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
      if (ends) (reaped_ ? ending_ : told_) |= bit(number);
      if ((number == SIGINT || number == SIGQUIT) && info.ssi_code == SI_KERNEL) typed_ = number;
      child_.signal(number);
      if (!reaped_) continue;
      if (number == SIGTSTP) {
        stop_this_process(Stop::alone);
        heed_clock();
      }
      if (number == SIGTSTP || ends) child_.signal(SIGCONT);  // and nobody else would continue them
    }
  }

  Child& child_;
  const HeldLocks& locks_;
  const Terminal& terminal_;
  const Rules& rules_;
  const int signals_, timer_, listener_;
  Console& console_;
  const Duration started_ = boot_now();
  Outcome outcome_;
  Duration trusted_until_ = started_;  // the last that was heard; renewals move it on
  std::optional<Duration> kill_at_;
  bool killed_ = false, reaped_ = false, yielding_ = false;
  Duration reaped_at_{};
  // The signals to end that its group has had, from others than this process; and those, once it has ended, on whose
  // account the others of its group are waited for. Bit n - 1: signal n.
  std::uint64_t told_ = 0, ending_ = 0;
  int typed_ = 0;  // of those a SIGINT or SIGQUIT that came from the terminal
  bool losing_ = false, overran_ = false, said_ = false;
  bool stop_asked_ = false;  // by a SIGTSTP to this process, which has been passed on
};

}  // namespace

Wakers::Wakers()
    : timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)),
      listener_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (timer_ >= 0 && listener_ >= 0) return;
  const int error = errno;
  close();
  throw std::runtime_error(fmt::format("the command cannot be watched over: {}", std::strerror(error)));
}

Wakers::~Wakers() { close(); }

void Wakers::close() const noexcept {
  for (const int descriptor : {timer_, listener_})
    if (descriptor >= 0) ::close(descriptor);
}

Outcome supervise(Child& child, const HeldLocks& locks, const Terminal& terminal, const Rules& rules, int signals,
                  const Wakers& wakers, Console& console) {
  return Watch(child, locks, terminal, rules, signals, wakers, console).run();
}

}  // namespace dlock::tools::run
