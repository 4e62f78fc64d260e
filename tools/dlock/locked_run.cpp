// The course of a run, from the question for its lock to its release, and with what code it exits; what the command
// finds in its environment.
#include "locked_run.hpp"

#include "acquire_options.hpp"
#include "boot_clock.hpp"
#include "held_locks.hpp"
#include "nesting.hpp"
#include "show.hpp"
#include "waiting.hpp"

#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace dlock::tools::run {
namespace {

// What the engine tells, for people.
void tell(const Event& event, Console& console) {
  switch (event.kind) {
    case Event::Kind::trust_low:
      console.warning(fmt::format("the lock {} (token {}) is not being renewed, and can be trusted for {} more: {}",
                                  in_quotes(event.name), number(event.token), shown(event.took), event.text));
      return;
    case Event::Kind::retried: console.detail(fmt::format("tried again: {}", event.text)); return;
    case Event::Kind::reconnected: console.detail("connected to the database again"); return;
    case Event::Kind::weak_durability: console.detail(event.text); return;
    case Event::Kind::granted:
    case Event::Kind::released:
    case Event::Kind::lost:
    case Event::Kind::abandoned:
    case Event::Kind::busy:
    case Event::Kind::timed_out:
    case Event::Kind::renewed_late:
    case Event::Kind::deadlock: return;
  }
}

// The job that this run and all runs around it belong to: what they hold and wait for counts as one when deadlocks are
// looked for.
Job this_job() {
  auto outer = Job::from_environment();
  return outer ? std::move(outer) : Job::unique("dlock-run");
}

class LockedRun {
 public:
  LockedRun(Plan& plan, StatusFile& status_file, Console& console)
      : plan_(plan), status_file_(status_file), console_(console) {
    console_.begin_writing_apart();  // after the guardian was made, before the engine has something to say
  }

  int run() {
    try {
      plan_.lock.job = this_job();
      if (const auto code = obtain()) return *code;
      const int code = run_command();
      // The engine would wait for what it still has under way. All is said, and the lease ends by itself.
      if (unconfirmed_) {
        console_.wait_until_written();
        std::fflush(nullptr);
        if (typed_.typed != 0) end_as_typed(typed_.typed, typed_.heard);
        ::_exit(code);
      }
      return code;
    } catch (...) {
      child_.finish(Child::Rest::killed);
      locks_.reset();
      signals_.restore();
      report_.outcome = "failed";
      done(failed_code);
      throw;
    }
  }

  // Of what has come from the terminal, if that has ended the command.
  const Outcome& typed() const noexcept { return typed_; }

 private:
  int done(int code) {
    report_.exit_code = code;
    if (report_.tokens.empty()) report_.waited = since(asked_);
    status_file_.write(report_, console_);
    return code;
  }

  static Duration since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
  }

  // A code to leave with; empty: it is ours.
  std::optional<int> obtain() {
    const auto interrupted = [&](int signal) {
      signals_.restore(signal);
      report_.outcome = "interrupted";
      const int code = done(128 + signal);
      console_.wait_until_written();  // this process may leave here
      return code;
    };
    Refusal refusal;
    try {
      const int signal = wait_and_go_on(
          signals_,
          [&](const std::stop_token& stop) {
            engine_.emplace(plan_.url, plan_.engine);
            for (const auto& name : plan_.names) refuse_nesting(*engine_, name);
            locks_ = ask(*engine_, plan_.names, plan_.wait, plan_.lock, stop, refusal);
          },
          interrupted);
      if (signal != 0) {
        locks_.reset();  // released, if it was granted at that moment
        return interrupted(signal);
      }
    } catch (const Error& error) {
      const bool away = error.fault() == Fault::unavailable || error.fault() == Fault::timeout;
      if (!away || !plan_.skip_if_unavailable) throw;
      signals_.restore();
      const auto skipped = fmt::format("skipped: {}", error.what());
      if (plan_.conflict_code != 0) console_.note(skipped);
      else console_.detail(skipped);
      report_.outcome = "unavailable";
      return done(plan_.conflict_code);
    }
    if (!locks_) {
      signals_.restore();
      if (plan_.conflict_code != 0) say_busy(refusal.holder, console_);
      report_.outcome = "not_obtained";
      return done(plan_.conflict_code);
    }
    report_.waited = since(asked_);
    for (const auto& lock : locks_->all()) report_.tokens.emplace_back(lock.name(), lock.token());
    return std::nullopt;
  }

  static const Command& command(Plan& plan, const Signals& signals) {
    plan.command.mask = signals.mask_before();
    plan.command.ignored = signals.ignored();
    return plan.command;
  }

  Settings settings() const {
    auto owners = variable(owners_variable);
    std::string grants;
    for (const auto& lock : locks_->all()) {
      owners += (owners.empty() ? "" : " ") + lock.owner();
      grants += fmt::format("{}{} {} {}", grants.empty() ? "" : "\n", number(lock.token()), lock.owner(), lock.name());
    }
    Settings settings{fmt::format("DLOCK_TTL_MS={}", plan_.rules.times.ttl.count() / 1000),
                      fmt::format("{}={}", owners_variable, owners), plan_.lock.job.environment()};
    // What cannot be said is taken away: what a run around this one has said is not of these.
    const auto set = [&settings](const std::string& name, const std::string& value, bool possible) {
      settings.push_back(possible ? name + "=" + value : name);
    };
    const auto& first = locks_->all().front();
    const bool alone = locks_->all().size() == 1;
    set("DLOCK_GRANTS", grants, !alone || first.name().find('\n') == std::string::npos);
    set("DLOCK_NAME", first.name(), alone);
    set("DLOCK_TOKEN", std::to_string(number(first.token())), alone);
    set("DLOCK_OWNER", first.owner(), alone);
    return settings;
  }

  int run_command() {
    const auto started = std::chrono::steady_clock::now();
    const Terminal terminal;
    const Wakers wakers;
    const bool in_foreground = terminal.to_be_given();
    const auto trusted_until = boot_now() + locks_->weakest().remaining();
    if (!locks_->weakest().valid()) throw std::runtime_error("the lock was lost before the command could be started");
    child_.start(settings(), in_foreground, trusted_until);
    if (in_foreground) terminal.give(child_.group());
    const auto outcome = supervise(child_, *locks_, terminal, plan_.rules, signals_.descriptor(), wakers, console_);
    if (!outcome.lost && !outcome.overtime) typed_ = outcome;
    unconfirmed_ = outcome.lost || locks_->release() == Released::unconfirmed;
    if (outcome.lost)
      locks_.reset();    // there may be nothing to release, and nobody to ask: takes the time of one request at most
    signals_.restore();  // what is left is to say what came of it
    if (unconfirmed_ && !outcome.lost)
      console_.warning(fmt::format("the release of {} could not be confirmed; it ends with its lease", all_names()));
    report_.held = since(started);
    return finish(outcome);
  }

  std::string all_names() const {
    std::vector<std::string> quoted;
    for (const auto& name : plan_.names) quoted.push_back(in_quotes(name));
    return joined(quoted, ", ");
  }

  int finish(const Outcome& outcome) {
    const int error = outcome.child.exec_error;
    if (error != 0) {
      report_.outcome = "not_executed";
      const int code = error == ENOENT ? not_found_code : not_executable_code;
      console_.error(Exit::usage, fmt::format("the command {} cannot be executed: {}",
                                              in_quotes(plan_.command.words.front()), std::strerror(error)));
      return done(code);
    }
    report_.child_status = outcome.child.status;
    report_.child_signal = outcome.child.signal;
    report_.outcome = outcome.lost                ? "lost"
                      : outcome.overtime          ? "max_runtime"
                      : outcome.child.signal != 0 ? "signalled"
                                                  : "done";
    return done(outcome.lost ? plan_.lost_code : outcome.overtime ? overtime_code : outcome.child.status);
  }

  Plan& plan_;
  StatusFile& status_file_;
  Console& console_;
  // Blocked before the engine makes its threads. A run reads nothing from the terminal, and whoever does so beside it
  // does not stop it.
  const Signals signals_{{SIGTTIN}};
  const std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  Report report_;
  std::optional<Engine> engine_;
  std::optional<HeldLocks> locks_;
  bool unconfirmed_ = false;
  Outcome typed_;
  Child child_{command(plan_, signals_)};  // before any thread; ended before the lock is released
};

}  // namespace

int follow(Plan plan, StatusFile& status_file, Console& console) {
  const std::unique_ptr<Console, void (*)(Console*)> written(&console, [](Console* it) { it->end_writing_apart(); });
  plan.engine.observer = [&console](const Event& event) { tell(event, console); };
  int code = 0;
  Outcome typed;
  {
    LockedRun run(plan, status_file, console);
    code = run.run();
    typed = run.typed();
  }
  console.end_writing_apart();
  if (typed.typed != 0) end_as_typed(typed.typed, typed.heard);
  return code;
}

}  // namespace dlock::tools::run
