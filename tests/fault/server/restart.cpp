// What becomes of locks when the server dies and comes back.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// One server for the cases of this file: starting one takes seconds.
PrivateServer& mortal() {
  static const auto server = opener().private_server();
  return *server;
}

}  // namespace

TEST_CASE("a server that crashes and comes back remembers every grant, and engines go on with it") {
  const auto place = mortal().place();
  EventLog news;
  Engine::install_schema(place->url());
  Engine engine(place->url(), {.reentrance = Reentrance::none,
                               .timeouts = {.request = 2s * slowness(), .release = 5s * slowness()},
                               .observer = news.observer()});
  auto kept = engine.try_lock("kept", {.lease = 10min, .renew_every = 100ms});
  auto granted = engine.try_lock("granted a moment before", {.lease = 10min, .renew = false});
  REQUIRE(kept);
  REQUIRE(granted);
  mortal().stop();
  CHECK(news.comes(Event::Kind::retried));
  CHECK(thrown_by([&] { engine.inspect("kept"); }).fault);
  CHECK(kept->valid());
  mortal().start();
  REQUIRE(eventually([&] { return !thrown_by([&] { engine.inspect("kept"); }).fault; }));
  CHECK(engine.inspect("kept")->token == kept->token());
  CHECK(engine.inspect("granted a moment before")->owner == granted->owner());
  CHECK_FALSE(engine.try_lock("kept"));
  CHECK_FALSE(kept->loss());
  CHECK(kept->release() == Released::freed);
  CHECK(granted->release() == Released::freed);
  CHECK(news.comes(Event::Kind::reconnected));
}

TEST_CASE("a server that is set to forget is said to be, by the setting's name, and one that is not is not") {
  const auto place = mortal().place();
  Engine::install_schema(place->url());
  const auto told = [&] {
    EventLog news;
    { Engine engine(place->url(), {.observer = news.observer()}); }  // its destructor delivers what is to be told
    return news.of(Event::Kind::weak_durability);
  };
  CHECK(told().empty());
  const auto setting = place->make_forgetful();
  std::vector<EventLog::Item> warnings;
  REQUIRE(eventually([&] {
    warnings = told();
    return !warnings.empty();
  }));
  CHECK(warnings.size() == 1);
  CHECK_MESSAGE(warnings.front().text.find(setting) != std::string::npos, warnings.front().text);
}
