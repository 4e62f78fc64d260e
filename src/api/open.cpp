// The way from a URL and options to an engine, and which options are refused.
#include "api/open.hpp"

#include "engine/faults.hpp"
#include "engine/session_id.hpp"
#include "store/sql_lock_table.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/url.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace dlock::api {
namespace {

constexpr Duration shortest_lease = std::chrono::milliseconds{1};
constexpr Duration longest_time = until_released;
constexpr Duration shortest_ticket = std::chrono::milliseconds{300};
constexpr Duration shortest_interval = std::chrono::milliseconds{1};
constexpr unsigned most_combined = 1000;
constexpr std::size_t longest_text = 255;
constexpr std::size_t longest_metadata = 4096;
constexpr std::size_t length_of_owner = 32;

std::string shown(Duration duration) { return fmt::format("{} us", duration.count()); }

void check_range(std::string_view what, Duration value, Duration low, Duration high) {
  if (value < low || value > high)
    throw Error(Fault::misuse,
                fmt::format("{} {} is out of range: from {} to {}", what, shown(value), shown(low), shown(high)));
}

std::string host_name() {
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0 || buffer.front() == '\0') return "localhost";
  return buffer.data();
}

}  // namespace

void check_positive(std::string_view what, Duration value) {
  if (value <= Duration{}) throw Error(Fault::misuse, fmt::format("{} {} must be longer than 0", what, shown(value)));
}

void check(const EngineOptions& options) {
  check_identifier("EngineOptions::table", options.table);
  if (!options.schema.empty()) check_identifier("EngineOptions::schema", options.schema);
  if (!options.history_table.empty()) check_identifier("EngineOptions::history_table", options.history_table);
  check_text("EngineOptions::node", options.node, longest_text);
  check_text("EngineOptions::label", options.label, longest_text);
  check_text("EngineOptions::application", options.application, 63);
  check_lease("EngineOptions::lease", options.lease);
  if (options.margin) check_range("EngineOptions::margin", *options.margin, Duration{}, longest_time);
  if (options.connections == 0) throw Error(Fault::misuse, "EngineOptions::connections 0 must be at least 1");
  if (options.combine == 0 || options.combine > most_combined)
    throw Error(Fault::misuse,
                fmt::format("EngineOptions::combine {} is out of range: from 1 to {}", options.combine, most_combined));
  check_positive("EngineOptions::timeouts.connect", options.timeouts.connect);
  check_positive("EngineOptions::timeouts.request", options.timeouts.request);
  check_positive("EngineOptions::timeouts.release", options.timeouts.release);
  check_positive("EngineOptions::polling.first", options.polling.first);
  check_positive("EngineOptions::polling.longest", options.polling.longest);
  check_range("EngineOptions::reaper.grace", options.reaper.grace, Duration{1}, longest_time);
  check_range("EngineOptions::ticket", options.ticket, shortest_ticket, longest_time);
  check_range("EngineOptions::hand_overs.time", options.hand_overs.time, Duration{}, longest_time);
  check_range("EngineOptions::hand_overs.local", options.hand_overs.local, Duration{}, std::chrono::minutes{1});
  check_range("EngineOptions::linger", options.linger, Duration{}, longest_time);
  if (options.reaper.every != Duration{})
    check_range("EngineOptions::reaper.every", options.reaper.every, shortest_interval, longest_time);
  if (options.reaper.retention < options.reaper.grace)
    throw Error(
        Fault::misuse,
        fmt::format("EngineOptions::reaper.retention {} must not be shorter than EngineOptions::reaper.grace {}",
                    shown(options.reaper.retention), shown(options.reaper.grace)));
}

void check(const LockOptions& options) {
  if (options.mode == Mode::node)
    throw Error(Fault::misuse, "LockOptions::mode node is not chosen: ask for it by LockOptions::reentrance node");
  if (options.lease) check_lease("LockOptions::lease", *options.lease);
  check_range("LockOptions::at_least", options.at_least, Duration{}, longest_time);
  check_range("LockOptions::delay_after_loss", options.delay_after_loss, Duration{}, longest_time);
  if (options.max_hold != Duration{}) check_lease("LockOptions::max_hold", options.max_hold);
  if (options.lease && options.max_hold != Duration{} && *options.lease > options.max_hold)
    throw Error(Fault::misuse, fmt::format("LockOptions::lease {} must not be longer than LockOptions::max_hold {}",
                                           shown(*options.lease), shown(options.max_hold)));
  if (options.mode == Mode::permits && (options.limit < 1 || options.permits < 1 || options.permits > options.limit))
    throw Error(Fault::misuse,
                fmt::format("LockOptions::permits {} must be from 1 to LockOptions::limit {}, which is how "
                            "many there are",
                            options.permits, options.limit));
  if (options.mode != Mode::permits && (options.limit != 0 || options.permits != 1))
    throw Error(Fault::misuse,
                fmt::format("LockOptions::permits {} and limit {} are for Mode::permits, and the mode is {}",
                            options.permits, options.limit, to_string(options.mode)));
  if (options.renew_every) check_positive("LockOptions::renew_every", *options.renew_every);
  if (options.label) check_text("LockOptions::label", *options.label, longest_text);
  check_metadata("LockOptions::metadata", options.metadata);
}

void check_reason(std::string_view what, std::string_view reason) { check_text(what, reason, longest_text); }

void check_lease(std::string_view what, Duration lease) { check_range(what, lease, shortest_lease, longest_time); }

void check_time(std::string_view what, Duration time) { check_range(what, time, Duration{}, longest_time); }

void check_metadata(std::string_view what, std::string_view metadata) { check_text(what, metadata, longest_metadata); }

void check(const Grant& grant) {
  const bool digits = std::all_of(grant.owner.begin(), grant.owner.end(),
                                  [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (grant.owner.size() != length_of_owner || !digits)
    throw Error(Fault::misuse,
                fmt::format("Grant::owner {} must be {} hexadecimal digits, as it was handed out",
                            in_quotes(std::string_view(grant.owner).substr(0, longest_text)), length_of_owner));
}

namespace {

// The one option of a URL that is no database's own.
ResolvedUrl behind(const dialects::Dialect& dialect, Url url, dialects::ConnectOptions options) {
  if (const auto prepared = url.take("prepared")) {
    if (*prepared != "on" && *prepared != "off")
      throw Error(Fault::misuse, fmt::format("the option prepared={} of the URL is unknown; prepared is on or off",
                                             in_quotes(*prepared)));
    options.prepared_statements = options.prepared_statements && *prepared == "on";
  }
  return {dialect, dialect.connector(url, options)};
}

}  // namespace

ResolvedUrl resolve(std::string_view url, const dialects::ConnectOptions& options) {
  // First of all: what stands before a colon may as well be a user, and the rest a password.
  const auto scheme = scheme_of(url);
  std::string known;
  for (const auto* dialect : dialects::all()) {
    for (const auto each : dialect->traits().schemes) {
      if (each == scheme) return behind(*dialect, Url::parse(url), options);
      known += known.empty() ? "" : ", ";
      known += each;
    }
  }
  throw Error(Fault::misuse,
              fmt::format("the database URL has the unknown scheme {}; this build knows {}", in_quotes(scheme), known));
}

ResolvedUrl resolve(std::string_view url, const dialects::ConnectOptions& options, AskCredentials credentials,
                    Duration patience) {
  auto resolved = resolve(url, options);
  if (!credentials) return resolved;
  if (!resolved.connector->as({}))
    throw Error(Fault::misuse,
                fmt::format("credentials are given, but nobody logs in to {}", resolved.connector->target()));
  resolved.connector =
      std::make_unique<CredentialsConnector>(std::move(resolved.connector), std::move(credentials), patience);
  return resolved;
}

std::shared_ptr<Core> open(std::string_view url, EngineOptions options) {
  check(options);
  if (options.node.empty()) options.node = host_name();
  if (options.label.empty()) options.label = fmt::format("{}:{}", host_name(), ::getpid());
  dialects::ConnectOptions connect;
  connect.application = options.application;
  connect.prepared_statements = options.prepared_statements;
  auto resolved = resolve(url, connect, options.credentials, options.timeouts.request);
  auto engine_id = engine::random_id();
  try {
    std::shared_ptr<store::LockTable> table =
        store::open_lock_table(resolved.dialect, std::move(resolved.connector),
                               {options.schema, options.table, options.history_table, options.connections,
                                options.combine, options.timeouts.connect, options.history > 0, engine_id});
    return std::make_shared<Core>(std::move(table), std::move(options), std::move(engine_id));
  } catch (const Failure& failure) { throw engine::to_error(failure, false); } catch (const std::system_error& error) {
    if (planted("no_descriptor_is_no_error")) throw;
    throw Error(Fault::unavailable, fmt::format("the engine's threads cannot be set up: {}", error.what()));
  }
}

}  // namespace dlock::api
