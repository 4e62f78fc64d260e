// This file knows what is wrong with -n, -w, --meta and the like.
#include "asking.hpp"

#include "tools/shared/usage.hpp"

#include <nlohmann/json.hpp>

namespace dlock::tools {

void Asking::add_to(CLI::App& app) {
  app.add_option("NAME", name_, "the lock's name")->required();
  app.add_flag("-n,--nonblock", nonblock_, "do not wait");
  app.add_option("-w,--wait", wait_, "wait at most this long (default: as long as it takes; 0 = -n)");
  app.add_option("--at-least", at_least_, "keep the lock closed this long from now on, also if it is released or lost earlier");
  label_option_ = app.add_option("--label", label_, "who holds it, for people (default host:pid)");
  app.add_option("--meta", metadata_, "KEY=VALUE for people, shown by inspect; may be repeated")->take_all();
}

std::optional<Duration> Asking::wait() const {
  if (nonblock_) return Duration{};
  if (wait_.empty()) return std::nullopt;
  return parse_duration("--wait", wait_);
}

LockOptions Asking::lock_options() const {
  LockOptions options;
  if (!at_least_.empty()) options.at_least = parse_duration("--at-least", at_least_);
  if (label_option_->count() > 0) options.label = label_;
  if (metadata_.empty()) return options;
  nlohmann::ordered_json object;
  for (const auto& item : metadata_) {
    const auto equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("--meta " + in_quotes(item) + " is not of the form KEY=VALUE");
    object[item.substr(0, equals)] = item.substr(equals + 1);
  }
  try {
    options.metadata = object.dump();
  } catch (const nlohmann::json::exception&) {
    throw UsageError("--meta is not valid UTF-8");
  }
  return options;
}

EngineOptions engine_options(const ConnectionOptions& connection) {
  EngineOptions options;
  options.schema = connection.schema();
  options.table = connection.table();
  options.history_table = connection.history_table();
  options.connect_timeout = connection.connect_timeout();
  options.application = "dlock";
  return options;
}

}  // namespace dlock::tools
