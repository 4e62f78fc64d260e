// What can be said on the command line of a run, and what is wrong with it.
#include "run.hpp"

#include "tools/shared/usage.hpp"

#include <dlock/error.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace dlock::tools {
namespace {

constexpr auto footer =
    "Exit codes: the command's own; 75 busy, 79 lost, 124 too long, 125 dlock failed\n"
    "Examples:\n"
    "  dlock run -n -E 0 --at-least 50s nightly -- ./report.sh   # three hosts' cron";

constexpr auto manual =
    R"(What follows -- is executed directly, never through a shell, and its exit status is passed on, as are its
standard streams, its terminal and its signals: HUP, INT, QUIT, TERM, USR1, USR2, WINCH and CONT reach its
process group. What of HUP, INT and QUIT was ignored when dlock was started, by nohup or in the background of
a script, stays ignored for both. dlock itself writes to standard error only. While it waits for the lock,
HUP, INT and TERM end it at once, and the command is never started.

The lease is renewed as long as the command runs, and given back when it has ended.
# WHEN THE LOCK IS LOST
The command and its process group are dead before the lease can expire, also if dlock is killed or stopped. A
renewal that fails is tried again until only the time to end the command is left; then its group gets the
lost-signal, and after --kill-after KILL. Only if dlock and its guardian process are both stopped does nobody
kill it. Then, and after a release by force, another holder may be running already, and only the token
protects your data.
# GIVING WAY
With --yield-signal the command is told once when somebody else waits for the lock: it may end early, between
two items, or go on. The signal goes to the command alone, and not to what it has started; what does not
expect USR1 is ended by it. A waiter is seen with the next renewal (--renew-every): at once if it is a dlock
run or has a ticket (--fifo), else when it has waited for a second.
# TOGETHER WITH OTHERS
With --shared any number of commands run at one time, as readers do, and nobody who comes without; who waits
to run alone comes before readers that come later. With --limit M as many run as have M permits together;
--permits takes more than one of them. Each goes by its own --limit: to make it smaller ends nothing that
runs. Every one has a lease and a token of its own.
# SEVERAL NAMES
The command runs while all of them are held, and is ended when one of them is lost; nobody else is let in to
any. Their order does not matter, and none is held while dlock waits: runs that want some of the same names
never block each other for good. With --fifo each name in the way is waited for in turn; among those who want
several there is no order. The time of --at-least begins when all are granted. --yield-signal tells when
somebody waits for one of them. --shared, --limit and --permits are for one name.
# ENVIRONMENT OF THE COMMAND
  DLOCK_NAME     the lock's name
  DLOCK_TOKEN    the fencing token, a decimal number: write it beside your data, refuse smaller ones
  DLOCK_OWNER    the random name of this holder
  DLOCK_GRANTS   a line for each name: token, owner, name, with a blank between them
  DLOCK_TTL_MS   the length of the lease
  DLOCK_JOB      its job: that of the run around this one, if there is one
  DLOCK_OWNERS   the owners of this run and of those around it, the outermost first

The first three are there for one name alone. A run inside a run of the same name on the same database is
refused, since it would wait for itself.
# EXIT STATUS
  75 (-E)    the lock was not obtained (-n, -w), or the database is away (--if-unavailable skip)
  79         the lock was lost while the command ran (--lost-exit-code), whatever its own status
  124        --max-runtime was exceeded while the command ran, whatever its own status
  125        dlock failed before the command started: usage, database, permission, schema
  126, 127   the command is not executable, or not found
  128+n      the command, or dlock while waiting, was ended by signal n
  others     the command's own

A command may answer the same numbers; --status-file settles what they mean. --max-runtime sends TERM to the
command's process group, and KILL after --kill-after; if the command itself had ended before, and only what it
left is ended, the exit is the command's own. With -E 0 a lock that is busy is no news: nothing is printed.
# EXAMPLES
  dlock run -n nightly -- ./report.sh
  dlock run -w 5m deploy -c 'make && make install'
  dlock run --limit 3 import -- ./import.sh   # three at a time, on all hosts
  dlock run --shared catalog -- ./export.sh
  dlock run db/orders db/stock -- ./move.sh   # both, or none
  dlock run --yield-signal USR1 reindex -- ./batch.sh
  echo x | dlock run import -- psql -f -)";

int parse_signal(std::string_view option, const std::string& text) {
  std::string name = text;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    if (const char* known = ::sigabbrev_np(signal); known != nullptr && name == known) return signal;
  if (!name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return static_cast<int>(parse_number(option, text, 1, SIGRTMAX));
  throw UsageError(
      fmt::format("{} {} is no signal; write for example TERM, INT, USR1, or a number", option, in_quotes(text)));
}

// "-c", also behind other letters.
bool may_have_shell_text(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with('-') && !word.starts_with("--") && word.find('c') != std::string::npos;
  });
}

std::vector<std::string> command_of(const Arguments& arguments, const std::optional<std::string>& shell) {
  if (shell) {
    if (arguments.cut)
      throw UsageError(fmt::format("-c {} and a command after -- exclude each other", in_quotes(*shell)));
    const char* interpreter = std::getenv("SHELL");
    return {interpreter != nullptr && *interpreter != '\0' ? interpreter : "/bin/sh", "-c", *shell};
  }
  if (arguments.command.empty())
    throw UsageError("there is no command; write it after --, as in: dlock run NAME -- COMMAND");
  if (arguments.command.front().empty()) throw UsageError("the command \"\" is empty");
  return arguments.command;
}

}  // namespace

Run::Run(Command& tool, const Arguments& arguments)
    : command_(tool.add_command("run", "run a command under a lock, or several")) {
  command_.set_usage({"dlock run [OPTIONS] NAME… -- COMMAND [ARGUMENT…]"});
  command_.set_footer(footer);
  command_.set_manual(manual);
  asking_.add_with_names_to(command_).once = !arguments.cut && !may_have_shell_text(arguments.words);
  command_.add_option("-E,--conflict-exit-code", "N", conflict_code_, "exit code if the lock is busy (75)");
  command_.add_option("--ttl", "D", times_.ttl, "length of the lease, from 1s (30s)");
  command_.add_option("--renew-every", "D", times_.renew_every, "how often it is renewed (ttl/3)").rare = true;
  command_.add_option("-k,--kill-after", "D", times_.kill_after, "from the lost-signal to KILL (5s, at most ttl/6)");
  command_.add_option("--lost-signal", "SIG", lost_signal_, "sent to the command if the lock is lost (TERM)").rare =
      true;
  command_.add_option("--lost-exit-code", "N", lost_code_, "exit code if the lock was lost (79)").rare = true;
  command_.add_option("--yield-signal", "SIG", yield_signal_, "sent to the command when somebody else waits");
  command_.add_option("--max-runtime", "D", max_runtime_, "TERM the command after this long, and exit 124");
  command_.add_option("-c", "TEXT", shell_, "a command for $SHELL, instead of one after --");
  command_.add_flag("--no-stdin", no_stdin_, "the command reads nothing").rare = true;
  command_.add_option("--if-unavailable", "fail|skip", if_unavailable_,
                      "database away at the start; skip is as -E (fail)");
  command_.add_option("--status-file", "FILE", status_file_, "write there what became of it, as JSON").rare = true;
}

run::Plan Run::plan(const ConnectionOptions& connection, const Arguments& arguments) const {
  run::Plan plan;
  plan.names = asking_.names();
  plan.rules.times = run::settle(times_);
  plan.rules.lost_signal = parse_signal("--lost-signal", lost_signal_);
  if (yield_signal_) plan.rules.yield_signal = parse_signal("--yield-signal", *yield_signal_);
  if (max_runtime_) plan.rules.max_runtime = parse_positive_duration("--max-runtime", *max_runtime_);
  plan.conflict_code = static_cast<int>(parse_number("--conflict-exit-code", conflict_code_, 0, 255));
  plan.lost_code = static_cast<int>(parse_number("--lost-exit-code", lost_code_, 0, 255));
  if (if_unavailable_ != "fail" && if_unavailable_ != "skip")
    throw UsageError(fmt::format("--if-unavailable {} is neither fail nor skip", in_quotes(if_unavailable_)));
  plan.skip_if_unavailable = if_unavailable_ == "skip";
  plan.command.words = command_of(arguments, shell_);
  plan.command.no_stdin = no_stdin_;
  plan.wait = asking_.wait();
  plan.lock = asking_.lock_options();
  plan.lock.lease = plan.rules.times.ttl;
  plan.lock.renew_every = plan.rules.times.renew_every;
  plan.engine = engine_options(connection);
  plan.engine.margin = plan.rules.times.safety;
  plan.url = connection.url({"DLOCK_URL"});  // last: it may read a password from standard input
  return plan;
}

int Run::operator()(const ConnectionOptions& connection, Console& console, const Arguments& arguments) {
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is no other fault than a disk that is full
  const auto status_file =
      status_file_ ? std::make_unique<run::StatusFile>(*status_file_) : std::make_unique<run::StatusFile>();
  const auto failed = [&] {
    if (!status_file->written()) status_file->write({"failed", run::failed_code}, console);
  };
  try {
    if (console.env()) throw UsageError("--format \"env\" is possible with acquire only; use text or json");
    return run::follow(plan(connection, arguments), *status_file, console);
  } catch (const UsageError&) {
    failed();
    throw;
  } catch (const Error& error) {
    failed();
    if (error.fault() == Fault::misuse) throw;
    console.error(exit_code(error.fault()), error.what());
  } catch (const std::exception& error) {
    failed();
    console.error(Exit::database, error.what());
  }
  return run::failed_code;
}

}  // namespace dlock::tools
