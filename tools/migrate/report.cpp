// The words, columns and fields that dlock-migrate prints.
#include "tools/migrate/report.hpp"

#include "tools/migrate/signals.hpp"
#include "tools/shared/json.hpp"

#include <date/date.h>
#include <fmt/core.h>

#include <algorithm>

namespace dlock::tools::migrate {
namespace {

std::string_view word_of(schema::SchemaState state) {
  switch (state) {
    case schema::SchemaState::failed: return "database";
    case schema::SchemaState::good: return "ok";
    default: return schema::to_string(state);
  }
}

std::string shown(const std::optional<schema::Version::Time>& time) {
  if (!time) return {};
  return date::format("%FT%TZ", date::sys_time<std::chrono::seconds>(
                                    std::chrono::floor<std::chrono::seconds>(time->time_since_epoch())));
}

std::string_view color_of(const std::string& state) {
  if (state == "applied" || state == "baseline") return "32";
  if (state == "failed") return "31";
  return "33";
}

Json json_of(const schema::Version& version) {
  auto object = Json::object({{"version", version.number},
                              {"name", version.name},
                              {"state", version.state},
                              {"known", version.known},
                              {"checksum", version.checksum},
                              {"min_client", version.min_client},
                              {"steps_done", version.steps_done},
                              {"steps_total", version.steps_total},
                              {"started_at", nullptr},
                              {"finished_at", nullptr},
                              {"tool_version", version.tool_version},
                              {"applied_by", version.applied_by},
                              {"error", version.error}});
  if (version.started) object["started_at"] = shown(version.started);
  if (version.finished) object["finished_at"] = shown(version.finished);
  return object;
}

Json json_of(const schema::Status& status) {
  auto versions = Json::array();
  for (const auto& version : status.versions) versions.push_back(json_of(version));
  return Json::object({{"state", schema::to_string(status.state)},
                       {"message", status.message},
                       {"hint", status.hint},
                       {"target", status.target},
                       {"server", status.server},
                       {"schema", status.schema},
                       {"table", status.table},
                       {"current", status.current},
                       {"latest", status.latest},
                       {"table_exists", status.table_exists},
                       {"history_exists", status.history_exists},
                       {"versions", std::move(versions)},
                       {"differences", status.differences}});
}

// Why it is not good. Answers the exit code.
template <class Report>
int print_refusal(Console& console, const Report& report) {
  if (report.state != schema::SchemaState::stopped)
    return console.error(exit_code(report.state, false), report.message, report.hint, word_of(report.state));
  console.error(Exit::database, report.message, report.hint, word_of(report.state));
  return 128 + Signals::received();
}

}  // namespace

Exit exit_code(schema::SchemaState state, bool reading) noexcept {
  switch (state) {
    case schema::SchemaState::good: return Exit::ok;
    case schema::SchemaState::failed: return Exit::database;
    case schema::SchemaState::pending: return Exit::pending;
    case schema::SchemaState::drift: return Exit::drift;
    case schema::SchemaState::interrupted: return Exit::interrupted;
    case schema::SchemaState::locked: return reading ? Exit::pending : Exit::locked;
    case schema::SchemaState::incompatible: return Exit::incompatible;
    case schema::SchemaState::stopped: return Exit::database;
  }
  return Exit::database;
}

int print(Console& console, const schema::Report& report, bool dry_run, std::string_view done) {
  if (report.state != schema::SchemaState::good) return print_refusal(console, report);
  if (console.json()) {
    auto object = Json::object({{"from", report.from},
                                {"to", report.to},
                                {"versions", report.versions},
                                {"restored", report.restored},
                                {"message", report.message},
                                {"dry_run", dry_run}});
    if (!report.plan.empty() || dry_run) object["sql"] = report.plan;
    console.result(std::move(object));
  } else if (report.versions.empty() && report.restored.empty()) {
    console.note("nothing to do: " + report.message);
  } else if (dry_run) {
    print_script(console, report.plan);
  } else {
    for (const auto version : report.versions)
      console.result(fmt::format("version {} {}", version, console.colored_result("32", done)));
    for (const auto& part : report.restored)
      console.result(fmt::format("{} {}", part, console.colored_result("32", "made anew")));
  }
  return number(Exit::ok);
}

int print(Console& console, const schema::GuardReport& report, bool applied) {
  if (report.state != schema::SchemaState::good) return print_refusal(console, report);
  if (console.json())
    console.result(Json::object({{"changed", report.changed && applied},
                                 {"applied", applied},
                                 {"message", report.message},
                                 {"sql", report.sql}}));
  else if (!applied) print_script(console, report.sql);
  else if (report.changed) console.result(report.message);
  if (!console.json() && !report.changed) console.note("nothing to do: " + report.message);
  return number(Exit::ok);
}

void print_script(Console& console, std::string_view text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  while (text.ends_with('\n')) text.remove_suffix(1);
  console.result(text);
}

void print(Console& console, const schema::Status& status) {
  if (console.json()) {
    console.result(json_of(status));
    return;
  }
  console.result(fmt::format("database  {}{}", status.target, status.server.empty() ? "" : " (" + status.server + ")"));
  console.result(fmt::format("table     {}{}", status.schema.empty() ? "" : status.schema + ".", status.table));
  console.result(fmt::format("version   {} of {}", status.current, status.latest));
  console.result(fmt::format("state     {}{}",
                             console.colored_result(status.state == schema::SchemaState::good ? "32" : "1;33",
                                                    std::string(word_of(status.state))),
                             status.message.empty() ? "" : ": " + status.message));
  if (!status.hint.empty()) console.result("          " + status.hint);
  std::size_t width = 4;
  for (const auto& version : status.versions) width = std::max(width, version.name.size());
  console.result(fmt::format("\n{:>7}  {:<{}}  {:<8}  {:<5}  {:<20}  {:<10}  {}", "VERSION", "NAME", width, "STATE",
                             "STEPS", "FINISHED", "MIN CLIENT", "BY"));
  for (const auto& version : status.versions) {
    const auto state = console.colored_result(color_of(version.state), fmt::format("{:<8}", version.state));
    console.result(fmt::format("{:>7}  {:<{}}  {}  {:<5}  {:<20}  {:<10}  {}", version.number, version.name, width,
                               state, fmt::format("{}/{}", version.steps_done, version.steps_total),
                               shown(version.finished), version.min_client, version.applied_by));
    if (!version.error.empty()) console.result(fmt::format("{:>7}  {}", "", version.error));
  }
}

int report(Console& console, const schema::Status& status) {
  const auto code = exit_code(status.state, true);
  if (code != Exit::ok) return console.error(code, status.message, status.hint, word_of(status.state));
  if (console.json()) console.result(json_of(status));
  else console.result("ok: " + status.message);
  return number(code);
}

}  // namespace dlock::tools::migrate
