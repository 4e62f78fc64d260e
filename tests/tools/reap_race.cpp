// Reapers in engines and commands share the work.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "support/reports.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("reapers of several processes report each abandoned lease exactly once in total") {
  Database database;
  constexpr int count = 300;
  add_old_rows(database.admin(), "left ", count, 1, true);
  std::vector<EventLog> news(3);
  std::vector<Child> children;
  Reports reports;
  {
    std::vector<Engine> engines;
    for (int i = 0; i < 3; ++i) {
      // Not so often that a file is never free for the commands.
      engines.push_back(database.engine({.reaper = {.every = 10ms * slowness(), .retention = 1h, .grace = 1h},
                                         .observer = news[static_cast<std::size_t>(i)].observer()}));
      children.emplace_back(std::vector<std::string>{path::tool("dlock"), "reap", "--format", "json", "--limit", "200",
                                                     "--retention", "1ms", "--grace", "1ms"},
                            std::vector<std::string>{"DLOCK_URL=" + database.url()});
    }
    CHECK(eventually([&] { return database.admin().held() == 0; }));
    for (auto& child : children) {
      std::string out;
      while (const auto text = child.line()) out += *text;
      CHECK(child.wait() == 0);
      const auto answer = Json::parse(out);
      for (const auto& lease : answer["settled"].elements()) ++reports[lease["name"].text()];
    }
  }
  for (const auto& heard : news) add(reports, heard);
  check_once_each(reports, "left ", count);
}
