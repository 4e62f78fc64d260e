// What `dlock wait` and `dlock graph` do.
#include "queue.hpp"

#include "acquire_options.hpp"
#include "graph.hpp"
#include "nesting.hpp"
#include "show.hpp"
#include "waiting.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/dlock.hpp>

#include <fmt/core.h>

namespace dlock::tools {
namespace {

constexpr std::size_t longest_pattern = 4096;

}  // namespace

Queue::Queue(Command& tool)
    : wait_(tool.add_command("wait", "wait until a lock is free, without taking it")),
      graph_(tool.add_command("graph", "who waits for whom, as text or for Graphviz")) {
  wait_.add_argument("NAME", name_).required = true;
  wait_.add_flag("-n,--nonblock", nonblock_, "do not wait, whatever -w says: tell if it is free");
  wait_.add_option("-w,--wait", "D", limit_, "wait at most this long (forever; 0 is -n)");
  wait_.set_footer(
      "Exits 0 when it is free, 75 when time is up. What an open transaction has locked counts as free. By then\n"
      "somebody else may have taken it: to do something while nobody else does, take the lock with run.\n"
      "Examples:\n"
      "  dlock wait -w 10m nightly && ./read-the-report.sh");
  graph_.add_argument("GLOB", glob_, "only names that match this shell pattern (*)");
  graph_.add_flag("--dot", dot_, "print it in Graphviz's language");
  graph_.set_footer(
      "Shown are waiters that have a row in the table: those who wait in turn (--fifo), those who hold something else, "
      "and of the others the first of each process, after a second. Of a name that several hold, each of them is "
      "shown. Deadlocks are named; the engine ends them by itself.\n"
      "Examples:\n"
      "  dlock graph --dot | dot -Tsvg > waiting.svg");
}

int Queue::operator()(const ConnectionOptions& connection, Console& console) const {
  if (console.env()) throw UsageError("--format \"env\" is possible with acquire only; use text or json");
  return wait_.parsed() ? wait(connection, console) : graph(connection, console);
}

int Queue::wait(const ConnectionOptions& connection, Console& console) const {
  check_name(name_);
  const auto limit = limit_ ? parse_duration("--wait", *limit_) : Duration::max();
  const auto options = engine_options(connection);
  const auto url = connection.url({"DLOCK_URL"});
  const Signals signals;
  bool free = false;
  Holder holder;
  const int signal = wait_for(signals, [&](const std::stop_token& stop) {
    Engine engine(url, options);
    if (!nonblock_ && !limit_) refuse_nesting(engine, name_);
    free = engine.wait_free(name_, nonblock_ ? Duration{} : limit, stop);
    if (free || stop.stop_requested()) return;
    if (auto row = engine.inspect(name_)) holder = std::move(*row);
    holder.name = name_;
  });
  if (signal != 0) return 128 + signal;
  if (!free) {
    say_busy(holder, console);
    return number(Exit::busy);
  }
  if (console.json()) console.result(Json::object({{"name", name_}, {"free", true}}));
  return number(Exit::ok);
}

int Queue::graph(const ConnectionOptions& connection, Console& console) const {
  check_text("the pattern", glob_, longest_pattern);
  if (dot_ && console.json()) throw UsageError("--dot and --format json exclude each other");
  Engine engine(connection.url({"DLOCK_URL"}), engine_options(connection));
  auto waiters = engine.waiters(glob_);
  auto sharers = waiters.empty() ? std::vector<Sharer>{} : engine.sharers(glob_);
  const WaitGraph graph(std::move(waiters), std::move(sharers));
  if (console.json()) console.result(as_json(graph));
  else console.result(dot_ ? as_dot(graph) : as_text(graph));
  return number(Exit::ok);
}

}  // namespace dlock::tools
