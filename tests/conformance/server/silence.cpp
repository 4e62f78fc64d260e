// The promise that a call ends in its time wherever the server falls silent: before it has greeted, while TLS is set
// up, while it lets the client in, before and in the middle of an answer.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t silences = 12;

std::chrono::milliseconds soon() { return 3s * slowness(); }

// Each of them is much shorter than soon().
const EngineOptions brief{.connections = 1, .timeouts = {.connect = 300ms, .request = 300ms, .release = 300ms}};

using Url = std::function<std::string(const Address&)>;

// Runs `call` on another thread; false when it is not over in time, and then it is helped out.
template <class Call>
bool ends_soon(Proxy& proxy, Call call) {
  auto ended = std::async(std::launch::async, call);
  const bool soon_enough = ended.wait_for(soon()) == std::future_status::ready;
  if (!soon_enough) proxy.cut();
  ended.wait();
  return soon_enough;
}

// How many bytes the server says on a connection until a lock is granted and freed.
std::size_t whole_conversation(const ServerPlace& server, const Url& url) {
  Proxy proxy(server);
  Engine engine(url(proxy.address()), {.connections = 1});
  engine.lock("job").release();
  return proxy.most_received();
}

std::string job(std::size_t i) { return "job" + std::to_string(i); }

// A release that nobody heard leaves its lock held.
void free_what_is_left(ServerDatabase& database) {
  database.server().disconnect_everybody();  // what they have asked for is done, or never will be
  Engine engine = database->engine();
  free_by_force(engine, "job");
  for (std::size_t i = 0; i < silences; ++i) free_by_force(engine, job(i));
}

void ends_in_every_silence(const ServerPlace& server, const Url& url) {
  const auto whole = whole_conversation(server, url);
  REQUIRE(whole > 100);
  for (std::size_t i = 0; i < silences; ++i) {
    const auto said = whole * i / silences;
    CAPTURE(said);
    Proxy proxy(server);
    proxy.stall_after(said);
    std::string outcome = "all of it was done";
    CHECK(ends_soon(proxy, [&] {
      try {
        Engine engine(url(proxy.address()), brief);
        if (auto lock = engine.try_lock(job(i))) lock->release();
      } catch (const Error& error) { outcome = error.what(); }
    }));
    CHECK(proxy.connections() > 0);
    if (said < whole / 2) CHECK_MESSAGE(outcome != "all of it was done", outcome);
  }
}

// A request that needs a new connection, and has much time.
void stops_in_every_silence(const ServerPlace& server, const Url& url) {
  const auto whole = whole_conversation(server, url);
  for (std::size_t i = 0; i < silences; i += 2) {
    const auto said = whole / 2 * i / silences;
    CAPTURE(said);
    Proxy proxy(server);
    Engine engine(url(proxy.address()), {.connections = 1, .timeouts = {.request = 60s, .release = 300ms}});
    engine.lock("job").release();
    proxy.stall_after(said);
    const auto before = proxy.connections();
    proxy.cut();
    std::stop_source stop;
    auto locked = std::async(std::launch::async, [&] { return engine.lock(stop.get_token(), job(i)).has_value(); });
    CHECK(eventually([&] { return proxy.connections() > before; }));
    CHECK(ends_soon(proxy, [&] {
      stop.request_stop();
      locked.wait();
    }));
    const bool granted = locked.get();
    if (said < whole / 4) CHECK_FALSE(granted);
  }
}

struct WithTls {
  std::unique_ptr<PrivateServer> server = opener().server_offering(Tls::offered);
  ServerDatabase database{server->place()};
  Url url = [this](const Address& door) { return database.server().url_with_tls_at(door); };
};

struct InTheClear {
  ServerDatabase database{};
  Url url = [this](const Address& door) { return database.server().url_at(door); };
};

}  // namespace

TEST_CASE("a call ends in its time wherever the server falls silent") {
  InTheClear clear;
  ends_in_every_silence(clear.database.server(), clear.url);
  free_what_is_left(clear.database);
}

TEST_CASE("a call ends in its time wherever the server falls silent behind TLS") {
  WithTls tls;
  ends_in_every_silence(tls.database.server(), tls.url);
  free_what_is_left(tls.database);
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
