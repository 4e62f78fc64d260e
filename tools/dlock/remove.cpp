// What `dlock remove` does.
#include "remove.hpp"

#include "acquire_options.hpp"
#include "show.hpp"
#include "waiting.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/progress.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>

namespace dlock::tools {
namespace {

std::string why_in_use(const Holder& row) {
  if (row.state == State::expired) return fmt::format("{}, and was not released: dlock reap settles it", why_busy(row));
  if (row.state != State::free) return why_busy(row);
  return fmt::format("{} was used meanwhile, or a transaction has its row locked", in_quotes(row.name));
}

int say(Removal removal, const std::string& name, const Holder& row, Console& console) {
  const auto quoted = in_quotes(name);
  switch (removal) {
    case Removal::removed:
      if (console.json()) console.result(Json::object({{"name", name}, {"removed", true}}));
      else console.result(fmt::format("removed {}", quoted));
      return number(Exit::ok);
    case Removal::absent: return say_no(fmt::format("there is no lock {}", quoted), console);
    case Removal::in_use: return say_busy(why_in_use(row), console);
    case Removal::wanted: return say_busy(fmt::format("{} is free, but waited for", quoted), console);
    case Removal::stopped: break;  // then the signal is the exit code
  }
  return number(Exit::ok);
}

}  // namespace

Remove::Remove(Command& tool)
    : command_(tool.add_command("remove", "forget a free lock, and what is kept in its row")) {
  command_.add_argument("NAME", name_).required = true;
  command_.add_option("--grace", "D", grace_, "wait before it is removed (60s); the same for all users of the table");
  command_.set_footer(
      "Exits 3 if there is no such lock, and 75 if it is held, closed, waited for, or expired and not settled yet.\n"
      "It waits out the grace, a minute, during which others lock on: who takes this lock then keeps it.\n"
      "Examples:\n"
      "  dlock remove 'upload/4711'\n"
      "  dlock release upload/4711 --token \"$token\" && dlock remove upload/4711");
  command_.set_manual(
      R"(A lock needs no removing: a free one is a row that the next one takes, and dlock reap removes those that
nobody has used for long. This is for one that is to be gone now, and for one that reap leaves alone because a
holder has kept something in its row for the next one.

It goes the way of reap, so that a fencing token never falls: first the floor under all new tokens is raised
to the token of this lock, then the command waits out the grace, and removes the row only if it is what it
was. Stopped while it waits, it has removed nothing.

--grace: as in dlock reap, the same for all users of the table (EngineOptions::reaper.grace, 60s).)");
}

int Remove::operator()(const ConnectionOptions& connection, Console& console) const {
  if (console.env()) throw UsageError("--format \"env\" is possible with acquire only; use text or json");
  check_name(name_);
  auto options = engine_options(connection);
  if (grace_) options.reaper.grace = parse_positive_duration("--grace", *grace_);
  if (options.reaper.retention < options.reaper.grace) options.reaper.retention = options.reaper.grace;
  const auto url = connection.url({"DLOCK_URL"});
  const Signals signals;
  Removal removal = Removal::stopped;
  Holder row;
  const int ended_by = wait_for(signals, [&](const std::stop_token& stop) {
    ProgressLine line(console);
    line.say(fmt::format("waiting out the grace of {}", shown(options.reaper.grace)));
    Engine engine(url, options);
    removal = engine.remove(name_, &row, stop);
  });
  if (ended_by != 0 && removal == Removal::stopped) return 128 + ended_by;
  return say(removal, name_, row, console);
}

}  // namespace dlock::tools
