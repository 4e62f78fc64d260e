// What `dlock top` takes, and how it prints one table after the other where there is no screen.
#include "top.hpp"

#include "acquire_options.hpp"
#include "show.hpp"
#include "top_screen.hpp"
#include "waiting.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

namespace dlock::tools {
namespace {

constexpr std::size_t longest_pattern = 4096;
constexpr std::int64_t most_times = 1'000'000'000;
constexpr Duration shortest_delay = std::chrono::milliseconds{100}, longest_delay = std::chrono::hours{24};

void print(const std::vector<Holder>& rows, bool first, Console& console) {
  if (console.json()) {
    auto locks = Json::array();
    for (const auto& row : rows) locks.push_back(as_json(row));
    console.result(Json::object({{"locks", std::move(locks)}}));
  } else {
    console.result((first ? "" : "\n") + as_text(rows));
  }
}

int print_tables(const TopQuestion& question, const TopView& view, Console& console) {
  const Signals signals;
  const int ended_by = wait_for(signals, [&](const std::stop_token& stop) {
    Engine engine(question.url, question.options);
    std::mutex mutex;
    std::condition_variable_any never;
    for (std::int64_t i = 0; !stop.stop_requested(); ++i) {
      print(arranged(with_holder(engine.list(question.glob)), view), i == 0, console);
      if (console.unwritten() != 0 || (question.times && i + 1 >= *question.times)) return;
      std::unique_lock guard(mutex);
      never.wait_for(guard, stop, question.delay, [] { return false; });
    }
  });
  return ended_by != 0 ? 128 + ended_by : number(Exit::ok);
}

}  // namespace

Top::Top(Command& tool) : command_(tool.add_command("top", "the locks that are held, live; reads only")) {
  command_.add_argument("GLOB", glob_, "only names that match this shell pattern (*)");
  command_.add_option("-d,--delay", "D", delay_, "from one look to the next, from 100ms (2s)");
  command_.add_flag("-b,--batch", batch_, "print one table after the other; so it is if there is no terminal");
  command_.add_option("-n,--times", "N", times_, "look so often, then end");
  command_.add_option("--sort", "name|holder|token|held|left|waiters", sort_, "what the rows are sorted by (name)");
  command_.add_flag("-r,--reverse", reverse_, "the other way round");
  command_.set_footer(
      "Keys in a terminal:\n"
      "  n o t h l w   sort by name, holder (owner), token, held, left, waiters\n"
      "  r             reverses the order\n"
      "  /             filters names and holders; Esc shows all again\n"
      "  Space         looks at once; arrows and pages scroll; q or ^C ends\n"
      "Examples:\n"
      "  dlock top 'report/*' -d 1s --sort held -r\n"
      "  dlock top -b -n 1 --format json");
}

int Top::operator()(const ConnectionOptions& connection, Console& console) const {
  if (console.env()) throw UsageError("--format \"env\" is possible with acquire only; use text or json");
  check_text("the pattern", glob_, longest_pattern);
  TopQuestion question;
  question.glob = glob_;
  question.delay = parse_duration("--delay", delay_);
  if (question.delay < shortest_delay || question.delay > longest_delay)
    throw UsageError(fmt::format("--delay {} is out of range: from 100ms to 1d", in_quotes(delay_)));
  if (times_) question.times = parse_number("--times", *times_, 1, most_times);
  const auto by = column_named(sort_);
  if (!by)
    throw UsageError(
        fmt::format("--sort {} is unknown; use name, holder, token, held, left or waiters", in_quotes(sort_)));
  question.options = engine_options(connection);
  question.url = connection.url({"DLOCK_URL"});
  const TopView view{*by, reverse_, {}};
  const bool screen = !batch_ && !console.json() && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  return screen ? show_on_screen(question, view, console) : print_tables(question, view, console);
}

}  // namespace dlock::tools
