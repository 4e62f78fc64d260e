// The promise that a call ends in its time wherever the server falls silent: before it has greeted, while TLS is set
// up, while it lets the client in, before and in the middle of an answer. A conversation that was listened to says
// where that is: the server falls silent before each of its bursts, in the middle of it, and a byte before its end.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

const std::string done = "all of it was done";

// What a call may take beyond its limits.
std::chrono::milliseconds late() { return 2s * slowness(); }

using Url = std::function<std::string(const Address&)>;
using Bursts = std::vector<std::size_t>;

// Runs `call` on another thread; false when it is not over in time, and then it is helped out.
template <class Call>
bool ends_within(std::chrono::milliseconds limit, Proxy& proxy, Call call) {
  auto ended = std::async(std::launch::async, call);
  const bool soon_enough = ended.wait_for(limit) == std::future_status::ready;
  if (!soon_enough) proxy.cut();
  ended.wait();
  return soon_enough;
}

// What an engine hears on its first connection until a lock is granted, and until that is released; and then on another
// one until a lock is granted.
struct Conversations {
  Bursts until_granted{}, until_released{}, until_granted_again{};
};

// With an account that the server has let in before.
Conversations listen(const ServerTestDatabase& server, const Url& url) {
  Conversations heard;
  for (int i = 0; i < 2; ++i) {
    Proxy proxy(server);
    Engine engine(url(proxy.address()), {.connections = 1, .timeouts = {.request = 1min, .release = 1min}});
    auto lock = engine.lock("listen");
    heard.until_granted = proxy.bursts();
    REQUIRE(lock.release() == Released::freed);
    heard.until_released = proxy.bursts();
    REQUIRE(proxy.connections() == 1);
    proxy.cut();
    REQUIRE(eventually([&] { return proxy.open() == 0; }));
    lock = engine.lock("listen");
    heard.until_granted_again = proxy.bursts();
    REQUIRE(proxy.connections() == 2);
  }
  REQUIRE(heard.until_granted.size() > 2);
  REQUIRE(heard.until_released.size() > heard.until_granted.size());
  REQUIRE(heard.until_granted_again.size() > 2);
  return heard;
}

// Each is a number of bytes.
std::vector<std::size_t> silences_in(const Bursts& ends) {
  std::set<std::size_t> all;
  std::size_t begin = 0;
  for (const auto end : ends) {
    all.insert({begin, std::midpoint(begin, end), end - 1});
    begin = end;
  }
  return {all.begin(), all.end()};
}

std::string job(std::size_t i) { return "job" + std::to_string(i); }

// A release that nobody heard leaves its lock held.
void free_what_is_left(ServerDatabase& database) {
  database.server().disconnect_everybody();  // what they have asked for is done, or never will be
  Engine engine = database->engine();
  for (const auto& row : engine.list("job*")) free_by_force(engine, row.name);
}

struct Outcome {
  bool in_time = false;
  std::size_t silenced = 0;  // connections
  std::string text{};
};

// Several at once, since each of them mostly waits.
template <class Attempt>
std::vector<Outcome> attempted(const std::vector<std::size_t>& places, int at_once, Attempt attempt) {
  std::vector<Outcome> outcomes(places.size());
  std::atomic<std::size_t> next{0};
  in_parallel(at_once, [&](int) {
    for (auto i = next++; i < places.size(); i = next++) outcomes[i] = attempt(places[i], job(i));
  });
  return outcomes;
}

Outcome call_in_silence(const ServerTestDatabase& server, const Url& url, std::size_t place, const std::string& name,
                        std::chrono::milliseconds limit) {
  Proxy proxy(server);
  proxy.stall_after(place);
  const EngineOptions brief{.connections = 1, .timeouts = {.connect = limit, .request = limit, .release = limit}};
  Outcome outcome;
  // It connects, asks, and releases.
  outcome.in_time = ends_within(3 * limit + late(), proxy, [&] {
    try {
      Engine engine(url(proxy.address()), brief);
      auto lock = engine.try_lock(name);
      outcome.text = lock && lock->release() == Released::freed ? done : "not all of it was done";
    } catch (const Error& error) { outcome.text = error.what(); }
  });
  outcome.silenced = proxy.silenced();
  return outcome;
}

void ends_in_every_silence(const ServerTestDatabase& server, const Url& url, int at_once) {
  const auto heard = listen(server, url);
  // One that is told nothing of a lock by its first connection may be told by the next, which has less to say before.
  const auto granted = std::min(heard.until_granted.back(), heard.until_granted_again.back());
  const auto places = silences_in(heard.until_released);
  const auto outcomes = attempted(places, at_once, [&](std::size_t place, const std::string& name) {
    Outcome outcome;
    // On a crowded machine the limit can be over before the server has fallen silent.
    for (auto limit = 300ms; limit <= 20s; limit *= 2) {
      // What an earlier one was granted, unheard, is in nobody's way.
      outcome = call_in_silence(server, url, place, fmt::format("{}/{}", name, limit.count()), limit);
      if (outcome.silenced > 0) break;
    }
    return outcome;
  });
  for (std::size_t i = 0; i < places.size(); ++i) {
    CAPTURE(places[i]);
    CAPTURE(outcomes[i].text);
    CHECK(outcomes[i].in_time);
    CHECK(outcomes[i].silenced > 0);
    if (places[i] < granted) CHECK(outcomes[i].text != done);
  }
}

// A request that needs a new connection, and has much time.
Outcome stop_in_silence(const ServerTestDatabase& server, const Url& url, std::size_t place, const std::string& name) {
  Proxy proxy(server);
  Engine engine(url(proxy.address()), {.connections = 1, .timeouts = {.request = 60s, .release = 300ms}});
  engine.lock(name).release();
  proxy.stall_after(place);
  proxy.cut();
  Outcome outcome;
  if (!eventually([&] { return proxy.open() == 0; })) return outcome;
  std::stop_source stop;
  auto locked = std::async(std::launch::async, [&] { return engine.lock(stop.get_token(), name).has_value(); });
  eventually([&] { return proxy.silenced() > 0 || locked.wait_for(0s) == std::future_status::ready; });
  outcome.silenced = proxy.silenced();
  outcome.in_time = ends_within(late(), proxy, [&] {
    stop.request_stop();
    locked.wait();
  });
  outcome.text = locked.get() ? "granted" : "stopped";
  return outcome;
}

void stops_in_every_silence(const ServerTestDatabase& server, const Url& url) {
  const auto places = silences_in(listen(server, url).until_granted_again);
  const auto outcomes = attempted(
      places, 6, [&](std::size_t place, const std::string& name) { return stop_in_silence(server, url, place, name); });
  for (std::size_t i = 0; i < places.size(); ++i) {
    CAPTURE(places[i]);
    CHECK(outcomes[i].silenced > 0);
    CHECK(outcomes[i].in_time);
    CHECK(outcomes[i].text == "stopped");
  }
}

struct WithTls {
  std::unique_ptr<PrivateServer> server = opener().server_offering(Tls::offered);
  ServerDatabase database{server->test_database()};
  Url url = [this](const Address& door) { return database.server().url_with_tls_at(door); };
};

struct InTheClear {
  ServerDatabase database{};
  Url url = [this](const Address& door) { return database.server().url_at(door); };
};

}  // namespace

TEST_CASE("a call ends in its time wherever the server falls silent") {
  InTheClear clear;
  ends_in_every_silence(clear.database.server(), clear.url, 6);
  free_what_is_left(clear.database);
}

TEST_CASE("a call ends in its time wherever the server falls silent behind TLS") {
  WithTls tls;
  ends_in_every_silence(tls.database.server(), tls.url, 4);
  free_what_is_left(tls.database);
}

TEST_CASE("a server that falls silent while TLS is set up keeps nobody else of the process from connecting") {
  WithTls tls;
  const auto heard = listen(tls.database.server(), tls.url).until_granted;
  for (const auto place : {heard[0], std::midpoint(heard[0], heard[1])}) {
    CAPTURE(place);
    Proxy proxy(tls.database.server());
    proxy.stall_after(place);
    auto silent = std::async(std::launch::async, [&] {
      return thrown_by([&] { Engine(tls.url(proxy.address()), {.timeouts = {.connect = 5min}}); }).text;
    });
    REQUIRE(eventually([&] { return proxy.silenced() > 0; }));
    CHECK(ends_within(far_longer(), proxy, [&] {
      Engine engine(tls.url(tls.database.server().address()), {.timeouts = {.connect = 5min}});
      CHECK(engine.try_lock("job"));
    }));
    CHECK(silent.wait_for(0s) == std::future_status::timeout);
    proxy.cut();
    CHECK(silent.get() != "");
  }
}

TEST_CASE("a stop ends a call wherever the server falls silent") {
  InTheClear clear;
  stops_in_every_silence(clear.database.server(), clear.url);
  free_what_is_left(clear.database);
}

TEST_CASE("a stop ends a call wherever the server falls silent behind TLS") {
  WithTls tls;
  stops_in_every_silence(tls.database.server(), tls.url);
  free_what_is_left(tls.database);
}
