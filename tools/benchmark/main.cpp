// This file knows the command line of dlock-bench.
#include "handoff.hpp"
#include "herd.hpp"
#include "pair.hpp"

#include "tools/shared/arguments.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"
#include "tools/shared/usage.hpp"

#include <cstdio>

namespace {

using namespace dlock::tools;

void print(const std::string& report) { std::fputs(report.c_str(), stdout); }

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = take_arguments(argc, argv);
  Console console("dlock-bench");
  CLI::App app{"Measures dlock on your own database.\n\nExample: dlock-bench pair --against raw -u sqlite:app.db"};
  app.require_subcommand(1);
  app.fallthrough();
  ConnectionOptions connection;
  connection.add_to(app);
  console.add_to(app);
  std::string seconds, against, threads = "1000", processes = "50";
  bool json = false, fifo = false;
  app.add_option("--seconds", seconds, "how long to measure: pair 10s, handoff 60s, herd 5s unless it is given")->type_name("D");
  app.add_flag("--json", json, "the same as --format json");
  auto* pair = app.add_subcommand("pair", "one client, one uncontended name: acquire and release, again and again");
  pair->add_option("--against", against, "raw: the same prepared statements through the plain client library");
  pair->footer("Example: dlock-bench pair --against raw --seconds 20s -e DATABASE_URL");
  auto* handoff = app.add_subcommand("handoff", "two processes: from a release to the waiter's grant, listening and polling");
  handoff->footer("Also how soon a wait ends after its deadline, and after a request to stop.\n"
                  "Exit code 1: a wait ended before its deadline.\n\n"
                  "Example: dlock-bench handoff --seconds 2m -e DATABASE_URL");
  auto* herd = app.add_subcommand("herd", "many waiters for one name: the load while it is held, and how all get it");
  herd->add_option("--threads", threads, "waiters in one process (1000)")->type_name("N");
  herd->add_option("--processes", processes, "processes with one waiter each (50)")->type_name("N");
  herd->add_flag("--fifo", fifo, "in the order of tickets, which is checked");
  herd->footer("Nothing else should use the server meanwhile: its work is counted as a whole.\n"
               "Exit code 1: a waiter did not get the lock, two had it at once, or not in the order of their tickets.\n\n"
               "Example: dlock-bench herd --threads 200 --processes 20 --fifo -e DATABASE_URL");
  return run_tool(console, app, arguments.words, [&] {
    if (!against.empty() && against != "raw")
      throw UsageError("--against " + in_quotes(against) + " is unknown; the only peer is raw");
    const bench::Target target{connection.url({"DLOCK_URL"}), connection.table()};
    const auto length = [&](double usual) {
      if (seconds.empty()) return usual;
      return std::chrono::duration<double>(parse_positive_duration("--seconds", seconds)).count();
    };
    const bool as_json = json || console.json();
    const auto tell = [&](const auto& options, auto result) {
      print(as_json ? bench::as_json(options, result) : bench::as_text(options, result));
      return result;
    };
    if (pair->parsed()) {
      const bench::Options options{target, length(10), !against.empty()};
      tell(options, bench::run_pair(options));
    } else if (handoff->parsed()) {
      const bench::HandoffOptions options{target, length(60)};
      if (tell(options, bench::run_handoff(options)).early)
        return console.error(Exit::database, "a wait ended before its deadline", {}, "early");
    } else {
      bench::HerdOptions options{target};
      options.threads = static_cast<std::size_t>(parse_number("--threads", threads, 0, 10'000));
      options.processes = static_cast<std::size_t>(parse_number("--processes", processes, 0, 1000));
      if (options.threads + options.processes == 0)
        throw UsageError("--threads 0 with --processes 0 leaves nobody to wait");
      options.fifo = fifo;
      options.seconds = length(5);
      if (const auto result = tell(options, bench::run_herd(options)); !result.wrong.empty())
        return console.error(Exit::database, result.wrong, {}, "wrong");
    }
    return number(Exit::ok);
  });
}
