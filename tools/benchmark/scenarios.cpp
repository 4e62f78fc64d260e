// The words on the command line of each scenario: what they are where they are not given, and within which bounds.
#include "scenarios.hpp"

#include "busy.hpp"
#include "handoff.hpp"
#include "herd.hpp"
#include "reap.hpp"
#include "renew.hpp"
#include "scale.hpp"
#include "shared.hpp"
#include "throughput.hpp"
#include "tools/shared/usage.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <vector>

namespace bench {
namespace {

using namespace dlock::tools;

// Prints the result, and draws it if that is wanted.
template <class Options, class Result>
void tell(const Order& order, const Options& options, Result& result) {
  const auto report = order.as_json() ? as_json(options, result) : as_text(options, result);
  std::fputs(report.c_str(), stdout);
  if (!order.common.plot.empty()) draw(as_plot(options, result), order.common.plot);
}

std::size_t count(std::string_view flag, const std::string& text, std::int64_t low, std::int64_t high) {
  return static_cast<std::size_t>(parse_number(flag, text, low, high));
}

double rate(const std::string& text) {
  double result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc{} || end != text.data() + text.size() || !(result > 0) || result > 1e7)
    throw UsageError("--rate " + in_quotes(text) +
                     " is not a number of pairs per second above 0, and 10000000 at most");
  return result;
}

// "raw,redis", each once.
std::vector<std::string> words_of(std::string_view flag, const std::string& text, std::string_view example) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size() || (at > 0 && at == text.size());) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto word = text.substr(at, end - at);
    if (word.empty())
      throw UsageError(std::string(flag) + " " + in_quotes(text) + " has an empty word; write for example " +
                       std::string(example));
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    at = end + 1;
  }
  return words;
}

Scenario add_throughput(Command& tool, Throughput throughput, const char* name, const char* description,
                        const char* footer) {
  struct Texts {
    std::string against = "raw,naive", threads = "64", async, engines, raw_connections, connections, combine, rate,
                linger, redis = "127.0.0.1:6379";
    bool by_statement = false;
  };
  const auto texts = std::make_shared<Texts>();
  auto& command = tool.add_command(name, description);
  command.add_option("--against", "P", texts->against,
                     "peers that take turns, with commas: raw, naive, advisory, getlock, redis (raw,naive); none");
  if (throughput != Throughput::pair) {
    command.add_option("--threads", "N", texts->threads, "clients of dlock's one engine (64)");
    command.add_option("--connections", "N", texts->connections, "of that engine, at most (its default)");
  }
  if (throughput == Throughput::many || throughput == Throughput::hot)
    command.add_option("--engines", "N", texts->engines,
                       "dlock once more: its threads in so many processes, an engine each; several with commas");
  if (throughput == Throughput::many) {
    command.add_option("--combine", "N", texts->combine,
                       "of its requests in one statement, at most (64); 1: each alone");
    command.add_option("--async", "N", texts->async,
                       "dlock once more: requests of one thread at the same time; several with commas");
    command.add_option("--raw-connections", "N", texts->raw_connections,
                       "clients of a peer, a connection each (the threads, 32 at most)");
  }
  if (throughput == Throughput::hot)
    command.add_flag("--by-statement", texts->by_statement,
                     "dlock once more, that hands over by a statement each time: EngineOptions::hand_overs.local 0");
  if (throughput == Throughput::pair)
    command.add_option("--linger", "D", texts->linger,
                       "dlock once more, whose locks linger for so long: EngineOptions::linger");
  command.add_option("--rate", "R", texts->rate,
                     "pairs to begin per second, all together; the time counts from when one was to begin");
  command.add_option("--redis", "A", texts->redis, "of its server: HOST:PORT or a socket (127.0.0.1:6379)");
  command.set_footer(footer);
  return {&command, [texts, throughput](const Order& order) {
            ThroughputOptions options;
            options.throughput = throughput;
            options.field.target = order.target;
            options.field.one_name = throughput == Throughput::hot;
            if (throughput != Throughput::pair) options.field.threads = count("--threads", texts->threads, 1, 10'000);
            if (!texts->connections.empty())
              options.field.connections =
                  static_cast<unsigned>(parse_number("--connections", texts->connections, 1, 1000));
            if (!texts->combine.empty())
              options.field.combine = static_cast<unsigned>(parse_number("--combine", texts->combine, 1, 1000));
            if (!texts->raw_connections.empty())
              options.field.raw_connections = count("--raw-connections", texts->raw_connections, 1, 10'000);
            options.field.redis = texts->redis;
            options.seconds = order.seconds(10);
            if (!texts->rate.empty()) options.rate = rate(texts->rate);
            for (const auto& word : words_of("--async", texts->async, "64,10000"))
              options.in_flight.push_back(count("--async", word, 1, 100'000));
            for (const auto& word : words_of("--engines", texts->engines, "2,4"))
              options.engines.push_back(count("--engines", word, 1, 100));
            if (options.rate > 0 && !options.in_flight.empty())
              throw UsageError("--rate is for threads, and not possible with --async");
            if (texts->against != "none") options.against = words_of("--against", texts->against, "raw,redis");
            options.by_statement = texts->by_statement;
            if (!texts->linger.empty()) options.linger = parse_positive_duration("--linger", texts->linger);
            const auto result = run_throughput(options);
            tell(order, options, result);
            return number(Exit::ok);
          }};
}

// Many clients for one name that several hold, beside one client that has a lock alone.
ThroughputOptions together(const Order& order, Throughput throughput, const std::string& threads,
                           const std::string& connections) {
  ThroughputOptions options;
  options.throughput = throughput;
  options.field.target = order.target;
  options.field.one_name = true;
  options.field.threads = count("--threads", threads, 1, 10'000);
  if (!connections.empty())
    options.field.connections = static_cast<unsigned>(parse_number("--connections", connections, 1, 1000));
  options.seconds = order.seconds(10);
  options.one = true;
  return options;
}

Scenario add_shared(Command& tool) {
  struct Texts {
    std::string threads = "64", connections, leases = "10000";
  };
  const auto texts = std::make_shared<Texts>();
  auto& command = tool.add_command("shared", "threads that read under one name; and many readers renewed");
  command.add_option("--threads", "N", texts->threads, "readers of one engine (64)");
  command.add_option("--connections", "N", texts->connections, "of that engine, at most (its default)");
  command.add_option("--leases", "N", texts->leases, "shared ones that are renewed afterwards; 0: none (10000)");
  command.set_footer(
      "Beside one client that has a lock alone. The renewal takes as long once more, in a table dlock_bench_renew "
      "that is made and taken away: that needs the rights of dlock-migrate. Its statements are those of the whole "
      "server, so let nothing else run there.\n"
      "Examples:\n"
      "  dlock-bench shared --threads 200 -e DATABASE_URL");
  return {&command, [texts](const Order& order) {
            SharedOptions options;
            options.throughput = together(order, Throughput::shared, texts->threads, texts->connections);
            options.throughput.field.lock.mode = dlock::Mode::shared;
            options.renewal = {order.target, order.seconds(10), count("--leases", texts->leases, 0, 1'000'000), true};
            const auto result = run_shared(options);
            tell(order, options, result);
            return number(Exit::ok);
          }};
}

Scenario add_semaphore(Command& tool) {
  struct Texts {
    std::string threads = "64", connections, limit = "16";
  };
  const auto texts = std::make_shared<Texts>();
  auto& command = tool.add_command("semaphore", "threads that wait for one of some permits of one name");
  command.add_option("--threads", "N", texts->threads, "clients of one engine (64)");
  command.add_option("--connections", "N", texts->connections, "of that engine, at most (its default)");
  command.add_option("--limit", "N", texts->limit, "permits in all (16)");
  command.set_footer(
      "Beside one client that has a lock alone.\n"
      "Examples:\n"
      "  dlock-bench semaphore --limit 4 -e DATABASE_URL");
  return {&command, [texts](const Order& order) {
            auto options = together(order, Throughput::semaphore, texts->threads, texts->connections);
            options.field.lock.mode = dlock::Mode::permits;
            options.field.lock.limit = parse_number("--limit", texts->limit, 1, 1'000'000'000);
            const auto result = run_throughput(options);
            tell(order, options, result);
            return number(Exit::ok);
          }};
}

Scenario add_busy(Command& tool) {
  const auto against = std::make_shared<std::string>();
  auto& command = tool.add_command("busy", "a try on a held lock, beside a select of its row: it writes nothing");
  command.add_option("--against", "P", *against, "raw: our statement through the plain client library, too");
  command.set_footer(
      "Nothing else should use the server meanwhile: its log is counted as a whole.\n"
      "Examples:\n"
      "  dlock-bench busy --against raw -e DATABASE_URL");
  return {&command, [against](const Order& order) {
            if (!against->empty() && *against != "raw")
              throw UsageError("--against " + in_quotes(*against) + " is not possible for busy; the only peer is raw");
            const BusyOptions options{order.target, order.seconds(10), !against->empty()};
            const auto result = run_busy(options);
            tell(order, options, result);
            return number(Exit::ok);
          }};
}

Scenario add_handoff(Command& tool) {
  auto& command = tool.add_command("handoff", "two processes: from a release to the waiter's grant");
  command.set_footer(
      "For a waiter that listens and one that polls; also how soon a wait ends after its deadline, and after a "
      "request to stop.\n"
      "Exit code 1: a wait ended before its deadline.\n"
      "Examples:\n"
      "  dlock-bench handoff --seconds 2m -e DATABASE_URL");
  return {&command, [](const Order& order) {
            const HandoffOptions options{order.target, order.seconds(60)};
            auto result = run_handoff(options);
            tell(order, options, result);
            if (result.early)
              return order.console.error(Exit::database, "a wait ended before its deadline", {}, "early");
            return number(Exit::ok);
          }};
}

Scenario add_herd(Command& tool) {
  struct Texts {
    std::string threads = "1000", processes = "50";
    bool fifo = false;
  };
  const auto texts = std::make_shared<Texts>();
  auto& command = tool.add_command("herd", "many waiters for one name: their load, and how all get it");
  command.add_option("--threads", "N", texts->threads, "waiters in one process (1000)");
  command.add_option("--processes", "N", texts->processes, "processes with one waiter each (50)");
  command.add_flag("--fifo", texts->fifo, "in the order of tickets, which is checked");
  command.set_footer(
      "Nothing else should use the server meanwhile: its work is counted as a whole.\n"
      "Exit code 1: a waiter did not get the lock, two had it at once, or not in the order of their tickets.\n"
      "Examples:\n"
      "  dlock-bench herd --threads 200 --processes 20 --fifo -e DATABASE_URL");
  return {&command, [texts](const Order& order) {
            HerdOptions options{order.target};
            options.threads = count("--threads", texts->threads, 0, 10'000);
            options.processes = count("--processes", texts->processes, 0, 1000);
            if (options.threads + options.processes == 0)
              throw UsageError("--threads 0 with --processes 0 leaves nobody to wait");
            options.fifo = texts->fifo;
            options.seconds = order.seconds(5);
            auto result = run_herd(options);
            tell(order, options, result);
            if (!result.wrong.empty()) return order.console.error(Exit::database, result.wrong, {}, "wrong");
            return number(Exit::ok);
          }};
}

constexpr auto own_table =
    "In tables dlock_bench_… of its own, which are made and taken away: that needs the rights of "
    "dlock-migrate.\nExamples:\n  ";

Scenario add_renew(Command& tool) {
  const auto leases = std::make_shared<std::string>("10000");
  auto& command = tool.add_command("renew", "an engine with many leases: a round of renewals");
  command.add_option("--leases", "N", *leases, "held by one engine (10000)");
  command.set_footer(std::string(own_table) + "dlock-bench renew --leases 1000 -e DATABASE_URL");
  return {&command, [leases](const Order& order) {
            const RenewOptions options{order.target, order.seconds(10), count("--leases", *leases, 1, 1'000'000)};
            const auto result = run_renew(options);
            tell(order, options, result);
            return number(Exit::ok);
          }};
}

Scenario add_scale(Command& tool) {
  struct Texts {
    std::string rows = "1000000", leases = "0", engines = "100";
  };
  const auto texts = std::make_shared<Texts>();
  auto& command = tool.add_command("scale", "an acquire in a table of 1,000 rows and of 1,000,000");
  command.add_option("--rows", "N", texts->rows, "in the large table (1000000)");
  command.add_option("--leases", "N", texts->leases, "held meanwhile in the large table, and renewed (0)");
  command.add_option("--engines", "N", texts->engines, "that hold them, in processes of 25 (100)");
  command.set_footer(std::string(own_table) + "dlock-bench scale --rows 100000 -e DATABASE_URL");
  return {&command, [texts](const Order& order) {
            ScaleOptions options{order.target, order.seconds(10)};
            options.rows = parse_number("--rows", texts->rows, 1, 100'000'000);
            options.leases = count("--leases", texts->leases, 0, 10'000'000);
            options.engines = count("--engines", texts->engines, 1, 10'000);
            const auto result = run_scale(options);
            tell(order, options, result);
            return number(Exit::ok);
          }};
}

Scenario add_reap(Command& tool) {
  const auto rows = std::make_shared<std::string>("100000");
  auto& command = tool.add_command("reap", "idle rows are removed, while a client locks");
  command.add_option("--rows", "N", *rows, "that are idle (100000)");
  command.set_footer(std::string(own_table) + "dlock-bench reap --rows 10000 -e DATABASE_URL");
  return {&command, [rows](const Order& order) {
            const ReapOptions options{order.target, order.seconds(5), parse_number("--rows", *rows, 1, 100'000'000)};
            const auto result = run_reap(options);
            tell(order, options, result);
            return number(Exit::ok);
          }};
}

}  // namespace

double Order::seconds(double usual) const {
  if (common.seconds.empty()) return usual;
  return std::chrono::duration<double>(parse_positive_duration("--seconds", common.seconds)).count();
}

std::vector<Scenario> add_scenarios(Command& tool) {
  constexpr auto turns =
      "All take turns in one run, each on fresh connections. raw: our statements through the plain client "
      "library. naive: an upsert without queues and floors. advisory, getlock: the database's own locks. "
      "redis: SET NX PX, and a script.\nExamples:\n  ";
  const auto with = [&](const char* example) { return std::string(turns) + example; };
  return {add_throughput(tool, Throughput::pair, "pair", "one client, one name: acquire and release, again and again",
                         with("dlock-bench pair --against raw --seconds 20s -e DATABASE_URL").c_str()),
          add_throughput(tool, Throughput::many, "many", "many threads, a name each",
                         with("dlock-bench many --against raw,redis -e DATABASE_URL").c_str()),
          add_throughput(tool, Throughput::hot, "hot", "many threads that want one name",
                         with("dlock-bench hot --against raw --threads 16 -e DATABASE_URL").c_str()),
          add_shared(tool),
          add_semaphore(tool),
          add_busy(tool),
          add_handoff(tool),
          add_herd(tool),
          add_renew(tool),
          add_scale(tool),
          add_reap(tool)};
}

}  // namespace bench
