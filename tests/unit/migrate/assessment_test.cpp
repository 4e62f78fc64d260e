// How a history is judged.
#include "migrate/assessment.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using migrate::assess;
using migrate::HistoryRow;
using migrate::SchemaSnapshot;
using migrate::SchemaState;

namespace {

constexpr std::string_view client = "0.5.0";

std::vector<migrate::Migration> migrations(int versions) {
  std::vector<migrate::Migration> result;
  for (int version = 1; version <= versions; ++version) {
    migrate::Migration migration;
    migration.version = version;
    migration.name = "v" + std::to_string(version);
    migration.checksum = "s1:" + std::to_string(version);
    migration.min_client = "0.1.0";
    result.push_back(migration);
  }
  return result;
}

HistoryRow row(int version, const std::string& state = "applied") {
  HistoryRow result;
  result.number = version;
  result.checksum = "s1:" + std::to_string(version);
  result.state = state;
  result.steps_done = 1;
  result.steps_total = 3;
  result.min_client = "0.1.0";
  result.tool_version = "0.5.0";
  result.applied_by = "me@here";
  return result;
}

SchemaSnapshot found(std::vector<HistoryRow> rows) {
  SchemaSnapshot result{true, true, true, true, std::move(rows)};
  if (result.rows.empty()) result.lock = result.status = result.history = false;
  return result;
}

migrate::Assessment judge(const SchemaSnapshot& what, int versions) {
  return assess(what, migrations(versions), client, migrate::named({}, {}));
}

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("nothing there is version 0, with everything pending") {
  const auto result = judge(found({}), 2);
  CHECK(result.state == SchemaState::pending);
  CHECK(result.current == 0);
  CHECK(result.latest == 2);
  CHECK(says(result.hint, "dlock-migrate up"));
}

TEST_CASE("an empty history is version 0") {
  auto empty = found({});
  empty.history = true;
  CHECK(judge(empty, 1).state == SchemaState::pending);
}

TEST_CASE("all applied is good, fewer is pending") {
  CHECK(judge(found({row(1), row(2)}), 2).state == SchemaState::good);
  const auto result = judge(found({row(1)}), 2);
  CHECK(result.state == SchemaState::pending);
  CHECK(result.current == 1);
}

TEST_CASE("a baseline counts as all that lies below it") {
  const auto result = judge(found({row(2, "baseline"), row(3)}), 3);
  CHECK(result.state == SchemaState::good);
  CHECK(result.current == 3);
}

TEST_CASE("a gap is drift, except above what this binary knows") {
  CHECK(judge(found({row(1), row(3)}), 3).state == SchemaState::drift);
  CHECK(judge(found({row(2)}), 2).state == SchemaState::drift);
  CHECK(judge(found({row(1), row(900)}), 1).state == SchemaState::good);
}

TEST_CASE("a newer table is good if it says so, else incompatible") {
  const auto fits = judge(found({row(1), row(2)}), 1);
  CHECK(fits.state == SchemaState::good);
  CHECK(fits.current == 2);
  CHECK(says(fits.message, "newer"));
  auto later = row(2);
  later.min_client = "0.6.0";
  CHECK(judge(found({row(1), later}), 1).state == SchemaState::incompatible);
}

TEST_CASE("a later format is incompatible before anything else is believed") {
  auto later = row(1, "failed");
  later.format = 2;
  CHECK(judge(found({later}), 1).state == SchemaState::incompatible);
}

TEST_CASE("another checksum is drift, but only of versions this binary knows") {
  auto other = row(1);
  other.checksum = "s1:x";
  CHECK(judge(found({other}), 1).state == SchemaState::drift);
  auto unknown = row(2);
  unknown.checksum = "s9:y";
  CHECK(judge(found({row(1), unknown}), 1).state == SchemaState::good);
}

TEST_CASE("a running version is somebody's as long as its lease, and interrupted after it") {
  auto running = row(1, "running");
  running.lease_left = std::chrono::seconds{5};
  CHECK(judge(found({running}), 1).state == SchemaState::locked);
  running.lease_left = Duration{};
  const auto result = judge(found({running}), 1);
  CHECK(result.state == SchemaState::interrupted);
  CHECK(says(result.message, "after step 1 of 3"));
  CHECK(says(result.message, "me@here"));
}

TEST_CASE("a failed version tells its step and its cause") {
  auto failed = row(1, "failed");
  failed.error = "the disk was full";
  const auto result = judge(found({failed}), 1);
  CHECK(result.state == SchemaState::interrupted);
  CHECK(says(result.message, "step 2 of 3: the disk was full"));
}

TEST_CASE("table and history that contradict each other") {
  auto lost = found({row(1)});
  lost.lock = false;
  CHECK(judge(lost, 1).state == SchemaState::drift);
  CHECK(!migrate::unrecorded(judge(lost, 1), lost));
  auto unrecorded = found({});
  unrecorded.lock = true;
  CHECK(migrate::unrecorded(judge(unrecorded, 1), unrecorded));
}

TEST_CASE("the command in a hint names what is not the default") {
  dialects::TableNames names;
  CHECK(migrate::hint_command("up", migrate::named(names, "public")) == "run \"dlock-migrate up\"");
  names.schema = "app";
  CHECK(migrate::hint_command("up", migrate::named(names, "app")) == "run \"dlock-migrate up\"");
  names.lock = "mine";
  names.history = "mine_schema_history";
  CHECK(migrate::hint_command("up", migrate::named(names, "public")) ==
        "run \"dlock-migrate up --schema app --table mine\"");
  names.history = "h";
  CHECK(says(migrate::hint_command("up", migrate::named(names, "app")), "--table mine --history-table h"));
}
