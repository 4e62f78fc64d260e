// All that can be asked about a table without changing it, dry runs included.
#pragma once

#include "support/admin.hpp"
#include "support/test_database.hpp"

#include <doctest/doctest.h>
#include <dlock/error.hpp>
#include <dlock/schema.hpp>

#include <functional>
#include <string>
#include <vector>

namespace dlock::test {

// Asks everything. Whatever the state of the table, no question may need a right to write, or fail for another reason
// than that it makes no sense there.
inline void look_in_every_way(const std::string& url) {
  const auto allowed = [](const std::function<schema::Report()>& ask) {
    try {
      const auto report = ask();
      CHECK_MESSAGE(report.state != schema::SchemaState::failed, report.message);
    } catch (const Error& error) {
      CHECK_MESSAGE((error.fault() == Fault::misuse || error.fault() == Fault::schema), error.what());
    }
  };
  CHECK(schema::status(url).state != schema::SchemaState::failed);
  CHECK(schema::check(url).state != schema::SchemaState::failed);
  allowed([&] { return schema::dump(url), schema::Report{}; });
  allowed([&] { return schema::plan(url); });
  allowed([&] { return schema::plan(url, {}, 1); });
  for (const bool careful : {true, false}) {
    schema::Options dry;
    dry.dry_run = true;
    dry.create_schema = dry.lock = dry.verify = careful;
    dry.timeouts.lock = Duration{};
    const int version = careful ? 2 : 1;
    allowed([&] { return schema::up(url, dry, version); });
    allowed([&] { return schema::down(url, version - 1, dry, !careful); });
    allowed([&] { return schema::repair(url, dry); });
    allowed([&] { return schema::baseline(url, version, dry); });
    allowed([&] { return schema::mark_applied(url, version, dry); });
    allowed([&] { return schema::discard(url, version, dry); });
  }
}

// The states a table can be in, by name, each made from an empty database.
struct TableState {
  const char* name;
  std::function<void(const TestDatabase& test_database)> make;
};

inline std::vector<TableState> states_of_a_table() {
  const auto run = [](const TestDatabase& test_database, const std::string& sql) { Admin(test_database).run(sql); };
  const std::string history = "resource_lock_schema_history";
  return {{"nothing", [](const TestDatabase&) {}},
          {"version 1",
           [](const TestDatabase& test_database) { static_cast<void>(schema::up(test_database.url(), {}, 1)); }},
          {"the latest version",
           [](const TestDatabase& test_database) { static_cast<void>(schema::up(test_database.url())); }},
          {"a half done version",
           [=](const TestDatabase& test_database) {
             static_cast<void>(schema::up(test_database.url()));
             run(test_database, "UPDATE " + history + " SET state = 'failed', steps_done = 1 WHERE version = 2");
           }},
          {"an empty history",
           [=](const TestDatabase& test_database) {
             static_cast<void>(schema::up(test_database.url()));
             run(test_database, "DELETE FROM " + history);
           }},
          {"no history", [=](const TestDatabase& test_database) {
             static_cast<void>(schema::up(test_database.url()));
             run(test_database, "DROP TABLE " + history);
           }}};
}

}  // namespace dlock::test
