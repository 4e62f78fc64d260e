// What `dlock history` does.
#include "history.hpp"

#include "acquire_options.hpp"
#include "show.hpp"
#include "waiting.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>

#include <vector>

namespace dlock::tools {
namespace {

constexpr std::int64_t most_entries = 1'000'000;

}  // namespace

History::History(Command& tool)
    : command_(tool.add_command("history", "who had one lock before, and how that ended, the newest first")) {
  command_.add_argument("NAME", name_).required = true;
  command_.add_option("--limit", "N", limit_, "at most so many (20)");
  command_.set_footer(
      "It begins where dlock-migrate history --apply has made it. Exits 3 if none of its rows is of this lock, and 7 "
      "if\n"
      "there is no history.\n"
      "Examples:\n"
      "  dlock history nightly\n"
      "  dlock history nightly --limit 1000 --format json");
  command_.set_manual(
      R"(One line, or object, for each grant that has ended: from when to when, the fencing token, who had it, and how
it ended: released; expired, where the reaper found it so; taken_over, where its lease was over and the next
one took the lock; or forced, and why. Where several held the lock, each has a line of its own. A grant that
goes on has none, nor has one that was never committed. Times are those of the database's clock.

It grows until it is cut: dlock reap --history N, or an engine that reaps and has EngineOptions::history,
keeps the newest N of all locks together.)");
}

int History::operator()(const ConnectionOptions& connection, Console& console) const {
  if (console.env()) throw UsageError("--format \"env\" is possible with acquire only; use text or json");
  check_name(name_);
  const auto limit = static_cast<std::size_t>(parse_number("--limit", limit_, 1, most_entries));
  const auto options = engine_options(connection);
  const auto url = connection.url({"DLOCK_URL"});
  const Signals signals;
  std::vector<HistoryEntry> entries;
  const int ended_by = wait_for(signals, [&](const std::stop_token&) {
    Engine engine(url, options);
    entries = engine.history(name_, limit);
  });
  if (ended_by != 0) return 128 + ended_by;
  if (console.json()) {
    auto grants = Json::array();
    for (const auto& entry : entries) grants.push_back(as_json(entry));
    console.result(Json::object({{"name", name_}, {"history", std::move(grants)}}));
  } else if (!entries.empty()) {
    console.result(as_table(entries));
  } else {
    console.note(fmt::format("there is no history of {}", in_quotes(name_)));
  }
  return number(entries.empty() ? Exit::no : Exit::ok);
}

}  // namespace dlock::tools
