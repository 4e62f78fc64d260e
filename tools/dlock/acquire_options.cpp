// What is wrong with a name, with -n, -w, --ttl, --meta and the like, and how long they may be; and with which options
// the engine of dlock is opened.
#include "acquire_options.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>
#include <utf8.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace dlock::tools {
namespace {

constexpr std::size_t longest_name = 255, longest_label = 255, longest_metadata = 4096;

}  // namespace

void check_text(std::string_view what, std::string_view text, std::size_t limit) {
  if (text.size() > limit)
    throw UsageError(
        fmt::format("{} {} has {} bytes; at most {} are allowed", what, in_quotes(text), text.size(), limit));
  if (!utf8::is_valid(text.begin(), text.end()))
    throw UsageError(fmt::format("{} {} is not valid UTF-8", what, in_quotes(text)));
}

void check_name(std::string_view name) {
  if (name.empty()) throw UsageError("the lock name \"\" is empty; a name has 1 to 255 bytes of UTF-8");
  check_text("the lock name", name, longest_name);
}

Duration parse_lease(std::string_view flag, std::string_view text, Duration shortest) {
  const auto lease = parse_duration(flag, text);
  if (lease < shortest || lease > until_released)
    throw UsageError(fmt::format("{} {} is out of range: from {} to 10 years", flag, in_quotes(text),
                                 shortest < std::chrono::seconds{1} ? "1ms" : "1s"));
  return lease;
}

Duration parse_ttl(std::string_view text) {
  if (text == "until-released") return until_released;
  return parse_lease("--ttl", text, std::chrono::milliseconds{1});
}

void Asking::add_to(Command& command) {
  command.add_argument("NAME", name_).required = true;
  add_options_to(command);
}

Option& Asking::add_with_names_to(Command& command) {
  auto& names = command.add_argument("NAME", names_);
  names.required = true;
  add_options_to(command);
  return names;
}

void Asking::add_options_to(Command& command) {
  command.add_flag("-n,--nonblock", nonblock_, "do not wait, whatever -w says: exit 75 if busy");
  command.add_option("-w,--wait", "D", wait_, "wait at most this long (forever; 0 is -n)");
  command.add_flag("--fifo", fifo_, "wait in turn: nobody who came later passes");
  command.add_flag("--shared", shared_, "together with others that say so, as readers");
  command.add_option("--limit", "M", limit_, "together with others, up to M permits in all");
  command.add_option("--permits", "N", permits_, "how many of the M are taken (1)");
  command.add_option("--at-least", "D", at_least_, "closed so long from the grant on, at least");
  command.add_option("--delay-after-loss", "D", delay_, "closed so long after a lease that ran out (0)").rare = true;
  command.add_option("--label", "TEXT", label_, "who holds it, for people (host:pid)");
  command.add_option("--meta", "K=V", metadata_, "shown by inspect; may be repeated");
}

const std::string& Asking::name() const {
  check_name(name_);
  return name_;
}

std::vector<std::string> Asking::names() const {
  auto names = names_;
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  for (const auto& name : names) {
    check_name(name);
    if (names.size() > 1 && name.find('\n') != std::string::npos)
      throw UsageError(
          fmt::format("the lock name {} has a line break, and could not be told from two of them in "
                      "DLOCK_GRANTS: several names are a line each",
                      in_quotes(name)));
  }
  if (names.size() > 1 && (shared_ || limit_ || permits_))
    throw UsageError(
        fmt::format("{} is for one name: several names are taken alone, all of them or none", shared_  ? "--shared"
                                                                                              : limit_ ? "--limit"
                                                                                                       : "--permits"));
  return names;
}

std::optional<Duration> Asking::wait() const {
  const auto limit = wait_ ? std::optional<Duration>(parse_duration("--wait", *wait_)) : std::nullopt;
  return nonblock_ ? Duration{} : limit;
}

void Asking::choose_mode(LockOptions& options) const {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  if (shared_ && (limit_ || permits_))
    throw UsageError(fmt::format("--shared and {} exclude each other: any number of readers, or so many permits",
                                 limit_ ? "--limit" : "--permits"));
  if (shared_) options.mode = Mode::shared;
  if (permits_ && !limit_)
    throw UsageError(fmt::format("--permits {} needs --limit, how many there are in all", in_quotes(*permits_)));
  if (!limit_) return;
  options.mode = Mode::permits;
  options.limit = parse_number("--limit", *limit_, 1, most);
  if (permits_) options.permits = parse_number("--permits", *permits_, 1, most);
  if (options.permits > options.limit)
    throw UsageError(fmt::format("--permits {} is more than --limit {}: that many will never be there",
                                 in_quotes(*permits_), in_quotes(*limit_)));
}

LockOptions Asking::lock_options() const {
  LockOptions options;
  choose_mode(options);
  if (fifo_) options.fairness = Fairness::fifo;
  if (at_least_) {
    options.at_least = parse_duration("--at-least", *at_least_);
    if (options.at_least > until_released)
      throw UsageError(fmt::format("--at-least {} is out of range: at most 10 years", in_quotes(*at_least_)));
  }
  if (delay_) {
    options.delay_after_loss = parse_duration("--delay-after-loss", *delay_);
    if (options.delay_after_loss > until_released)
      throw UsageError(fmt::format("--delay-after-loss {} is out of range: at most 10 years", in_quotes(*delay_)));
  }
  if (label_) {
    check_text("--label", *label_, longest_label);
    options.label = label_;
  }
  if (metadata_.empty()) return options;
  auto object = Json::object();
  for (const auto& item : metadata_) {
    const auto equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("--meta {} is not of the form KEY=VALUE", in_quotes(item)));
    check_text("--meta", item, longest_metadata);
    const auto key = item.substr(0, equals);
    if (object.contains(key))
      throw UsageError(fmt::format("--meta {} gives the key {} twice", in_quotes(item), in_quotes(key)));
    object[key] = Json(item.substr(equals + 1));
  }
  options.metadata = object.text_in_order();
  if (options.metadata.size() > longest_metadata)
    throw UsageError(fmt::format("--meta {} and the others have {} bytes as JSON; at most {} are allowed",
                                 in_quotes(metadata_.front()), options.metadata.size(), longest_metadata));
  return options;
}

std::optional<Lock> ask(Engine& engine, const std::string& name, std::optional<Duration> wait,
                        const LockOptions& options, const std::stop_token& stop, Refusal& refusal) {
  if (wait && *wait == Duration{}) return engine.try_lock(name, options, &refusal);
  return engine.try_lock_for(name, wait.value_or(Duration::max()), options, stop, &refusal);
}

EngineOptions engine_options(const ConnectionOptions& connection) {
  EngineOptions options;
  options.schema = connection.schema();
  options.table = connection.table();
  options.history_table = connection.history_table();
  options.timeouts.connect = connection.connect_timeout();
  options.timeouts.release = options.timeouts.request;  // the program ends right after it
  options.application = "dlock";
  options.reentrance = Reentrance::none;  // a command that asks twice means two holders
  return options;
}

}  // namespace dlock::tools
