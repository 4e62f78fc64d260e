// The promise that a candidate lives through a database that cannot be reached, and that its end waits for none.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

const auto brief = 300ms * slowness();
const auto late = 3s * slowness();

// An engine that notices soon that nobody answers.
Engine behind(Proxy& proxy, const ServerTestDatabase& server, const EventLog& news = {}) {
  return Engine(server.url_at(proxy.address()),
                {.timeouts = {.connect = brief, .request = brief, .release = brief}, .observer = news.observer()});
}

}  // namespace

TEST_CASE("a leader that is cut off is deposed before another one is elected, and campaigns until it is answered") {
  ServerDatabase database;
  Proxy proxy(database.server());
  EventLog news;
  auto engine = behind(proxy, database.server(), news), other = database->engine();
  const LockOptions lock{.lease = 1500ms * slowness()};
  std::atomic<int> deposed{0};
  ElectionOptions options;
  options.lock = lock;
  options.on_deposed = [&] { ++deposed; };
  Election first(engine, "job", options);
  REQUIRE(eventually([&] { return first.is_leader(); }));
  const auto term = first.term();
  REQUIRE(term);
  const int before = deposed;
  proxy.black_hole();
  Election second(other, "job", {.lock = lock});
  REQUIRE(eventually([&] {
    const bool led = first.is_leader();
    const bool follows = second.is_leader();
    CHECK_FALSE((follows && led && first.is_leader()));
    return follows;
  }));
  CHECK_FALSE(first.is_leader());
  CHECK(eventually([&] { return term->stop_token().stop_requested(); }));
  CHECK(term->loss() == Loss::unconfirmed);
  CHECK(eventually([&] { return deposed > before; }));
  const auto retried = news.of(Event::Kind::retried).size();
  CHECK(eventually([&] { return news.of(Event::Kind::retried).size() > retried; }));  // it campaigns
  CHECK(deposed == before + 1);
  CHECK(second.term()->token() > term->token());
  proxy.cut();
  proxy.pass();
  second.stop();
  CHECK(eventually([&] { return first.is_leader(); }));
  CHECK(first.term()->token() > term->token());
}

TEST_CASE("an election ends in time although the database does not answer, in office and while it campaigns") {
  ServerDatabase database;
  Proxy proxy(database.server());
  auto other = database->engine();
  {
    auto engine = behind(proxy, database.server());
    std::optional<Election> leads(std::in_place, engine, "job");
    REQUIRE(eventually([&] { return leads->is_leader(); }));
    std::optional<Election> waits(std::in_place, engine, "job");
    proxy.black_hole();
    const Stopwatch watch;
    waits.reset();
    CHECK(watch.elapsed() < late);
    const Stopwatch again;
    leads.reset();
    CHECK(again.elapsed() < brief + late);
  }
  proxy.refuse();
  free_by_force(other, "job");
}
