// Tests that a server whose settings may cost grants is not used in silence: each is named when an engine opens, or
// refused.
#include "support/database.hpp"
#include "support/event_log.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("a setting by which a server may forget is told by its name, and one that cannot be replicated is refused") {
  for (const auto& weak : opener().weak_servers()) {
    INFO(weak.setting);
    const auto server = opener().server_with(weak.arguments);
    ServerDatabase database(server->test_database());
    for (const auto& sql : weak.statements) database->admin().run(sql);
    EventLog news;
    const auto opened = thrown_by([&] { auto engine = database->engine({.observer = news.observer()}); });
    if (weak.refused) {
      CHECK_MESSAGE(opened.fault == Fault::misuse, opened.text);
      CHECK_MESSAGE(opened.names(weak.setting), opened.text);
      continue;
    }
    CHECK_MESSAGE(!opened.fault, opened.text);
    const auto told = news.of(Event::Kind::weak_durability);
    REQUIRE(told.size() == 1);
    CHECK_MESSAGE(told.front().text.find(weak.setting) != std::string::npos, told.front().text);
  }
}
