// Promises where other servers follow one: that a failover to them would forget grants is said, and again after the way
// to the server was lost.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// How many of the warnings are that a server follows which commits do not wait for.
auto failovers(const std::vector<EventLog::Item>& warnings) {
  return std::count_if(warnings.begin(), warnings.end(), [](const auto& item) {
    return item.text.find("follows: a failover to it forgets") != std::string::npos;
  });
}

// Two servers of this file's own, the second of which follows the first.
struct Pair {
  std::unique_ptr<PrivateServer> first = opener().replicating_server(), second = opener().replicating_server();
  std::unique_ptr<ServerTestDatabase> primary = first->test_database(), replica = second->test_database();
};

}  // namespace

TEST_CASE("a primary whose replica is sent commits that do not wait for it is said to forget in a failover") {
  if (opener().replicating_server == nullptr) return;
  Pair pair;
  Engine::install_schema(pair.primary->url());
  const auto told = [&](const std::string& url) {
    EventLog news;
    { Engine engine(url, {.observer = news.observer()}); }  // its destructor delivers what is to be told
    return failovers(news.of(Event::Kind::weak_durability)) > 0;
  };
  CHECK_FALSE(told(pair.primary->url()));
  pair.replica->follow(*pair.primary);
  CHECK(eventually([&] { return told(pair.primary->url()); }));
  // Who follows acknowledges from now on, or where it would have to follow anew for that, nobody.
  pair.primary->wait_for_followers();
  CHECK(told(pair.primary->url()) != pair.primary->has_standbys());
  pair.replica->follow(*pair.primary);
  CHECK(eventually([&] { return !told(pair.primary->url()); }));
}

TEST_CASE("a replica that has come meanwhile is told of after a reconnect, once") {
  if (opener().replicating_server == nullptr) return;
  Pair pair;
  ServerDatabase database(pair.first->test_database());
  EventLog news;
  auto engine = database->engine({.observer = news.observer()});
  CHECK(failovers(news.of(Event::Kind::weak_durability)) == 0);
  pair.replica->follow(database.server());
  const auto reconnect = [&] {
    const auto before = news.of(Event::Kind::reconnected).size();
    database.server().disconnect_everybody();
    CHECK(eventually([&] {
      static_cast<void>(thrown_by([&] { engine.try_lock("job").reset(); }));
      return news.of(Event::Kind::reconnected).size() > before;
    }));
  };
  reconnect();
  CHECK(eventually([&] {
    if (failovers(news.of(Event::Kind::weak_durability)) > 0) return true;
    reconnect();
    return false;
  }));
  reconnect();
  CHECK(failovers(news.of(Event::Kind::weak_durability)) == 1);
}
