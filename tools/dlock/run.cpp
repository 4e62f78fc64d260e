// This file knows the course of a run: ask, start, watch over, release; and its exit codes.
#include "run.hpp"

#include "child.hpp"
#include "contract.hpp"
#include "show.hpp"
#include "supervise.hpp"
#include "waiting.hpp"

#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

namespace dlock::tools {
namespace {

constexpr int not_started = 125, not_executable = 126, not_found = 127, overtime = 124;

constexpr auto help_end =
    "Everything after -- is the command; it is executed directly. Its exit status is passed on; otherwise:\n"
    "  75 (-E)  the lock was not obtained          124  --max-runtime exceeded\n"
    "  79       the lock was lost meanwhile        125  dlock failed before the command started\n"
    "  128+n    ended by signal n                  126, 127  command not executable, not found\n"
    "The command finds DLOCK_NAME, DLOCK_TOKEN, DLOCK_OWNER and DLOCK_TTL_MS in its environment.\n"
    "When the lock is lost the command is told (TERM), and killed before the lease can be somebody else's; only the token\n"
    "protects data from a command that was frozen (^Z, SIGSTOP) past its lease.\n\n"
    "Examples:\n"
    "  dlock run -n nightly -- ./report.sh\n"
    "  dlock run -n -E 0 --at-least 50s nightly -- ./report.sh     # in three hosts' crontabs\n"
    "  dlock run -w 5m deploy -c 'make && make install'";

// What became of a run, for --status-file.
struct Report {
  std::string outcome;
  std::optional<int> child_status{};
  std::int64_t token = 0;
  Duration held{}, waited{};
};

void write_report(const std::string& path, const Report& report, Console& console) {
  if (path.empty()) return;
  nlohmann::json json{{"format_version", 1},          {"outcome", report.outcome},
                      {"child_status", nullptr},      {"token", report.token},
                      {"held_ms", report.held.count() / 1000}, {"wait_ms", report.waited.count() / 1000}};
  if (report.child_status) json["child_status"] = *report.child_status;
  std::ofstream file(path, std::ios::trunc);
  file << json.dump() << '\n';
  file.flush();
  if (!file) console.warning(fmt::format("--status-file {} could not be written", in_quotes(path)));
}

int parse_signal(const std::string& text) {
  static constexpr std::array<std::pair<const char*, int>, 8> known{{{"HUP", SIGHUP},
                                                                      {"INT", SIGINT},
                                                                      {"QUIT", SIGQUIT},
                                                                      {"KILL", SIGKILL},
                                                                      {"USR1", SIGUSR1},
                                                                      {"USR2", SIGUSR2},
                                                                      {"TERM", SIGTERM},
                                                                      {"ALRM", SIGALRM}}};
  auto name = text.rfind("SIG", 0) == 0 ? text.substr(3) : text;
  for (const auto& [word, number] : known)
    if (name == word) return number;
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos)
    return static_cast<int>(parse_number("--lost-signal", name, 1, 64));
  throw UsageError("--lost-signal " + in_quotes(text) + " is unknown; use HUP, INT, QUIT, TERM, USR1, USR2, ALRM, KILL or a number");
}

std::vector<std::string> command_of(const Arguments& arguments, const std::string& shell) {
  if (!shell.empty()) {
    if (arguments.cut) throw UsageError("-c and a command after -- exclude each other");
    const char* interpreter = std::getenv("SHELL");
    return {interpreter != nullptr && *interpreter != '\0' ? interpreter : "/bin/sh", "-c", shell};
  }
  if (arguments.command.empty()) throw UsageError("there is no command; write it after --, as in: dlock run NAME -- CMD");
  return arguments.command;
}

Duration since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
}

}  // namespace

Run::Run(CLI::App& app) : app_(app.add_subcommand("run", "run a command under a lock")) {
  asking_.add_to(*app_);
  app_->footer(help_end);
  app_->add_option("-E,--conflict-exit-code", conflict_code_, "exit code if the lock is not obtained (default 75)");
  app_->add_option("--ttl", ttl_, "length of the lease (default 30s, at least 1s)");
  app_->add_option("--renew-every", renew_every_, "how often it is renewed (default ttl/3)");
  app_->add_option("-k,--kill-after", kill_after_, "from the lost-signal to KILL (default 5s, at most ttl/6)");
  app_->add_option("--lost-signal", lost_signal_, "sent to the command when the lock is lost (default TERM)");
  app_->add_option("--lost-exit-code", lost_code_, "exit code if the lock was lost (default 79)");
  app_->add_option("--max-runtime", max_runtime_, "end the command after this long, with exit code 124");
  app_->add_option("-c", shell_, "a command for $SHELL (or /bin/sh) instead of one after --");
  app_->add_flag("--no-stdin", no_stdin_, "the command reads nothing (default: it inherits standard input)");
  app_->add_option("--if-unavailable", if_unavailable_, "fail or skip when the database is away at the start (default fail)");
  app_->add_option("--status-file", status_file_, "write what became of it here, as JSON");
}

int Run::operator()(const ConnectionOptions& connection, Console& console, const Arguments& arguments) {
  try {
    return hold_and_run(connection, console, arguments);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    if (error.fault() == Fault::misuse) throw;
    write_report(status_file_, {"failed"}, console);
    console.error(exit_code(error.fault()), error.what());
    return not_started;
  } catch (const std::exception& error) {
    write_report(status_file_, {"failed"}, console);
    console.error(Exit::database, error.what());
    return not_started;
  }
}

int Run::hold_and_run(const ConnectionOptions& connection, Console& console, const Arguments& arguments) {
  run::Chosen chosen;
  chosen.ttl = parse_duration("--ttl", ttl_);
  if (!renew_every_.empty()) chosen.renew_every = parse_positive_duration("--renew-every", renew_every_);
  if (!kill_after_.empty()) chosen.kill_after = parse_duration("--kill-after", kill_after_);
  run::Rules rules;
  rules.times = run::settle(chosen);
  rules.lost_signal = parse_signal(lost_signal_);
  if (!max_runtime_.empty()) rules.max_runtime = parse_positive_duration("--max-runtime", max_runtime_);
  const auto conflict_code = static_cast<int>(parse_number("--conflict-exit-code", conflict_code_, 0, 255));
  const auto lost_code = static_cast<int>(parse_number("--lost-exit-code", lost_code_, 0, 255));
  if (if_unavailable_ != "fail" && if_unavailable_ != "skip")
    throw UsageError("--if-unavailable " + in_quotes(if_unavailable_) + " is neither fail nor skip");
  run::Command command;
  command.words = command_of(arguments, shell_);
  command.no_stdin = no_stdin_;

  auto lock_options = asking_.lock_options();
  lock_options.lease = rules.times.ttl;
  lock_options.renew_every = rules.times.renew_every;
  auto options = engine_options(connection);
  options.margin = rules.times.safety;
  const auto url = connection.url({"DLOCK_URL"});
  const auto wait = asking_.wait();
  const auto& name = asking_.name();

  const Signals signals;
  rules.signals = signals.descriptor();
  command.mask = signals.mask_before();
  const auto asked = std::chrono::steady_clock::now();
  std::optional<Engine> engine;
  std::optional<Lock> lock;
  Holder busy;
  bool nested = false;
  try {
    const int ended_by = wait_for(signals, [&](const std::stop_token& stop) {
      engine.emplace(url, options);
      const char* outer_name = std::getenv("DLOCK_NAME");
      const char* outer_owner = std::getenv("DLOCK_OWNER");
      if (outer_name != nullptr && outer_owner != nullptr && name == outer_name) {
        const auto row = engine->inspect(name);
        nested = row && !row->owner.empty() && row->owner == outer_owner;
        if (nested) return;
      }
      lock = wait && *wait == Duration{} ? engine->try_lock(name, lock_options, &busy)
             : wait                     ? engine->try_lock_for(name, *wait, lock_options, stop)
                                        : engine->lock(stop, name, lock_options);
      if (!lock && busy.name.empty() && !stop.stop_requested()) {
        auto row = engine->inspect(name);
        if (row) busy = std::move(*row);
        busy.name = name;
      }
    });
    if (ended_by != 0) {
      lock.reset();
      write_report(status_file_, {"interrupted", {}, 0, {}, since(asked)}, console);
      return 128 + ended_by;
    }
  } catch (const Error& error) {
    const bool away = error.fault() == Fault::unavailable || error.fault() == Fault::timeout;
    if (!away || if_unavailable_ != "skip") throw;
    console.note(fmt::format("skipped: {}", error.what()));
    write_report(status_file_, {"unavailable", {}, 0, {}, since(asked)}, console);
    return conflict_code;
  }
  if (nested)
    throw std::runtime_error(fmt::format("{} is held by the run this one is nested in: waiting for it would deadlock", in_quotes(name)));
  Report report{"not_obtained", {}, 0, {}, since(asked)};
  if (!lock) {
    if (conflict_code != 0) console.note(why_busy(busy));
    write_report(status_file_, report, console);
    return conflict_code;
  }
  report.token = number(lock->token());
  command.environment = {{"DLOCK_NAME", name},
                         {"DLOCK_TOKEN", std::to_string(report.token)},
                         {"DLOCK_OWNER", lock->owner()},
                         {"DLOCK_TTL_MS", std::to_string(rules.times.ttl.count() / 1000)}};
  const auto started = std::chrono::steady_clock::now();
  run::Child child(command);
  if (child.exec_error() != 0) {
    static_cast<void>(lock->release());
    report.outcome = "not_executed";
    write_report(status_file_, report, console);
    console.error(Exit::usage, fmt::format("{}: {}", in_quotes(command.words.front()), std::strerror(child.exec_error())));
    return child.exec_error() == ENOENT ? not_found : not_executable;
  }
  const auto outcome = run::supervise(child, *lock, rules, console);
  child.leave_foreground();
  if (lock->release() == Released::unconfirmed)
    console.warning(fmt::format("the release of {} could not be confirmed; it ends with its lease", in_quotes(name)));
  report.held = since(started);
  report.child_status = outcome.child.status;
  report.outcome = outcome.lost ? "lost" : outcome.overtime ? "max_runtime" : outcome.child.signal != 0 ? "signalled" : "done";
  write_report(status_file_, report, console);
  if (outcome.lost) return lost_code;
  if (outcome.overtime) return overtime;
  return outcome.child.status;
}

}  // namespace dlock::tools
