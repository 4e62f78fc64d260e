// This file knows what becomes of locks when the server dies and comes back.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/news.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a server that crashes and comes back remembers every grant, and engines go on with it") {
  const auto server = opener().private_server();
  auto place = server->place();
  {
    News news;
    Engine::install_schema(place->url());
    Engine engine(place->url(), {.observer = news.observer()});
    auto kept = engine.try_lock("kept", {.lease = 10min, .renew_every = 100ms});
    auto granted = engine.try_lock("granted a moment before", {.lease = 10min, .renew = false});
    REQUIRE(kept);
    REQUIRE(granted);
    server->stop();
    CHECK(eventually([&] { return news.has(Event::Kind::retried); }));
    CHECK(thrown_by([&] { engine.inspect("kept"); }).fault);
    CHECK(kept->valid());
    server->start();
    CHECK(eventually([&] { return engine.inspect("kept")->left > 0s; }));
    CHECK(engine.inspect("kept")->token == kept->token());
    CHECK(engine.inspect("granted a moment before")->owner == granted->owner());
    CHECK_FALSE(engine.try_lock("kept"));
    CHECK_FALSE(kept->loss());
    CHECK(kept->release() == Released::freed);
    CHECK(granted->release() == Released::freed);
    CHECK(news.comes(Event::Kind::reconnected));
  }
}
