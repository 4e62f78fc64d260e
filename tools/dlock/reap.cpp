// What `dlock reap` does.
#include "reap.hpp"

#include "acquire_options.hpp"
#include "waiting.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/progress.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace dlock::tools {
namespace {

constexpr std::size_t longest_pattern = 4096;
constexpr std::int64_t most_rows = 1'000'000'000;

struct Settled {
  std::string name, text;
  Token token{};
  Duration expired{};
};

std::string counted(std::size_t number, const char* one, const char* many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

std::string words_for(const ReapProgress& now) {
  switch (now.phase) {
    case ReapProgress::Phase::turn: return "another reaper is at work; waiting for its end";
    case ReapProgress::Phase::settling:
      return fmt::format("settled {}", counted(now.done, "abandoned lease", "abandoned leases"));
    case ReapProgress::Phase::grace:
      return fmt::format("{} can go; waiting out the grace, {} left", counted(now.total, "row", "rows"),
                         shown(now.left));
    case ReapProgress::Phase::removing:
      return fmt::format("removed {} of {}", now.done, counted(now.total, "row", "rows"));
  }
  return {};
}

}  // namespace

Reap::Reap(Command& tool)
    : command_(tool.add_command("reap", "remove rows unused for long, and settle abandoned leases")) {
  command_.add_argument("GLOB", glob_, "only names that match this shell pattern (*)");
  command_.add_option("--retention", "D", retention_, "keep what was used within this time (24h); at least the grace");
  command_.add_option("--grace", "D", grace_, "wait between the two steps (60s); the same for all users of the table");
  command_.add_option("--limit", "N", limit_,
                      "remove at most so many rows, settle at most so many leases (1000); or: all");
  command_.add_option("--history", "N", history_,
                      "of the history of all locks (dlock-migrate history) keep the newest N rows; 0: leave it (0)");
  command_.add_flag("--dry-run", dry_run_, "count what would be done, and write nothing");
  command_.set_footer(
      "It waits out the grace if there is something to remove: a minute, during which others lock on.\n"
      "Examples:\n"
      "  dlock reap --limit all                      # from cron, as rarely as you like\n"
      "  dlock reap 'upload/*' --retention 7d --dry-run");
  command_.set_manual(
      R"(Reaping is tidying up: an expired lock can be taken without it, and a fencing token never falls by it. A lease
that expired without release is settled: freed, and shown with who held it, once, whoever reaps. Free rows are
removed in two steps, both in this one call: first the floor under all new tokens is raised, then, if there is
anything to remove, the command waits out the grace and removes. So it takes a minute when it removes
something, and no time when it does not. What one call has raised another cannot use, since nothing about it
is stored: for cron, call it as a whole, as rarely as you like. Stopped while it waits, it has removed
nothing.

--grace: whoever takes a lock looks again if the answer took longer than half of the grace it was given
(EngineOptions::reaper.grace, 60s). A shorter --grace here than theirs could hand them an old token.

One reaper works on a table at a time; others wait. If the call fails or is stopped midway, what it has
settled is shown all the same, since nobody is told of it again; to a reader that does not read, for a second
at most. If the database did not answer either, the lease whose settling was under way is not among them: a
warning says so, and `dlock list --state free` tells of each lock who had it last, and whether that lease
expired.)");
}

std::size_t Reap::limit() const {
  if (limit_ == "all") return Reaping::all;
  try {
    return static_cast<std::size_t>(parse_number("--limit", limit_, 1, most_rows));
  } catch (const UsageError& error) { throw UsageError(fmt::format("{}, nor \"all\"", error.what())); }
}

EngineOptions Reap::options(const ConnectionOptions& connection) const {
  auto options = engine_options(connection);
  options.history = static_cast<std::size_t>(parse_number("--history", history_, 0, most_rows));
  if (grace_) options.reaper.grace = parse_positive_duration("--grace", *grace_);
  if (retention_) options.reaper.retention = parse_positive_duration("--retention", *retention_);
  if (options.reaper.retention < options.reaper.grace)
    throw UsageError(
        fmt::format("--retention {} is shorter than the grace of {} (--grace): rows must be kept for at least that",
                    shown(options.reaper.retention), shown(options.reaper.grace)));
  return options;
}

int Reap::operator()(const ConnectionOptions& connection, Console& console) const {
  if (console.env()) throw UsageError("--format \"env\" is possible with acquire only; use text or json");
  check_text("the pattern", glob_, longest_pattern);
  auto engine_options = options(connection);
  std::mutex mutex;
  std::vector<Settled> settled;  // guarded by mutex: written by the engine's own thread
  engine_options.observer = [&](const Event& event) {
    if (event.kind != Event::Kind::abandoned) return;
    const std::lock_guard guard(mutex);
    settled.push_back({std::string(event.name), std::string(event.text), event.token, event.took});
  };
  Reaping reaping;
  reaping.glob = glob_;
  reaping.limit = limit();
  reaping.dry_run = dry_run_;
  const auto url = connection.url({"DLOCK_URL"});
  const Signals signals;
  Engine::Reaped reaped;
  const auto settled_in_json = [&] {
    auto leases = Json::array();
    for (const auto& lease : settled)
      leases.push_back(Json::object({{"name", lease.name},
                                     {"token", number(lease.token)},
                                     {"expired_us", lease.expired.count()},
                                     {"text", lease.text}}));
    return leases;
  };
  const auto print_settled = [&] {
    for (const auto& lease : settled)
      console.result(fmt::format("settled {} (token {}): {} {} ago", in_quotes(lease.name), number(lease.token),
                                 printable(lease.text), shown(lease.expired)));
  };
  // Where it ends in the middle: nobody is told of these again.
  const auto print_so_far = [&] {
    const std::lock_guard guard(mutex);
    if (!console.json()) print_settled();
    else if (!settled.empty())
      console.result(Json::object({{"abandoned", settled.size()}, {"settled", settled_in_json()}}));
  };
  std::atomic<bool> settling = false;
  const auto reap = [&](const std::stop_token& stop) {
    ProgressLine line(console);
    reaping.progress = [&](const ReapProgress& progress) {
      settling = progress.phase == ReapProgress::Phase::settling;
      line.say(words_for(progress));
    };
    Engine engine(url, engine_options);
    reaped = engine.reap_all(reaping, stop);
  };
  int ended_by = 0;
  try {
    ended_by = wait_for(signals, reap, [&](int) {
      print_so_far();
      if (settling)
        console.warning(
            "the database has not answered: one lease more than is shown may be settled; dlock list --state free "
            "tells who had a lock last");
    });
  } catch (...) {
    print_so_far();
    throw;
  }
  reaped.abandoned = std::max(reaped.abandoned, settled.size());  // a signal, and a failure
  if (console.json()) {
    console.result(Json::object({{"dry_run", dry_run_},
                                 {"removed", reaped.removed},
                                 {"abandoned", reaped.abandoned},
                                 {"history", reaped.history},
                                 {"settled", settled_in_json()}}));
  } else {
    print_settled();
    console.result(fmt::format("{} {} and {} {}", dry_run_ ? "would remove" : "removed",
                               counted(reaped.removed, "row", "rows"), dry_run_ ? "settle" : "settled",
                               counted(reaped.abandoned, "abandoned lease", "abandoned leases")));
    if (reaped.history > 0)
      console.result(
          fmt::format("{} {} of history", dry_run_ ? "would cut" : "cut", counted(reaped.history, "row", "rows")));
  }
  return ended_by != 0 ? 128 + ended_by : number(Exit::ok);
}

}  // namespace dlock::tools
