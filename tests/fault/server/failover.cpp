// A server that takes no writes for a while, or is restarted, is waited for inside the caller's time.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// One server for the cases of this file: starting one takes seconds.
PrivateServer& failing() {
  static const auto server = opener().private_server();
  return *server;
}

bool retried_for(const EventLog& news, std::string_view words) {
  return eventually([&] {
    const auto all = news.of(Event::Kind::retried);
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& item) { return item.text.find(words) != std::string::npos; });
  });
}

}  // namespace

TEST_CASE("a server that is read-only for a while is waited for, and costs no lease") {
  ServerDatabase database(failing().test_database());
  EventLog news;
  Engine engine(database.server().url_of_role({"ALL"}),
                {.timeouts = {.request = 4min, .release = 4min}, .observer = news.observer()});
  auto kept = engine.try_lock("kept", {.lease = 10min, .renew_every = 100ms});
  REQUIRE(kept);
  database.server().take_writes(false);
  CHECK(retried_for(news, "read-only"));  // by the renewer: from here on the server takes no writes
  auto acquiring = std::async(std::launch::async, [&] { return engine.try_lock("job"); });
  CHECK(acquiring.wait_for(300ms) == std::future_status::timeout);
  CHECK(kept->valid());
  database.server().take_writes(true);
  auto lock = acquiring.get();
  REQUIRE(lock);
  CHECK(lock->release() == Released::freed);
  const auto end = database->admin().expires_at("kept");
  CHECK(eventually([&] { return database->admin().expires_at("kept") > end; }));
  CHECK_FALSE(kept->loss());
}

TEST_CASE("a server that stays read-only is said to be unavailable when the caller's time is over") {
  ServerDatabase database(failing().test_database());
  Engine engine(database.server().url_of_role({"ALL"}), {.timeouts = {.request = 1s * slowness()}});
  database.server().take_writes(false);
  Thrown thrown;
  Duration took{};
  CHECK(eventually([&] {  // a server may need a moment until it takes no more
    const Stopwatch time;
    thrown = thrown_by([&] { engine.try_lock("job"); });
    took = time.elapsed();
    return thrown.names("read-only");  // or that it could not connect anew in what was left of the time
  }));
  CHECK_MESSAGE(thrown.fault == Fault::unavailable, thrown.text);
  CHECK(took < 1s * slowness() + 2s * slowness());
  database.server().take_writes(true);
  CHECK(eventually([&] { return database->admin().held() == 0; }));  // what was granted in that moment is given back
}

TEST_CASE(
    "of many who share one connection to a server that stays read-only, whoever had an answer is told that it is") {
  ServerDatabase database(failing().test_database());
  Engine engine(database.server().url_of_role({"ALL"}), {.connections = 1, .timeouts = {.request = 6s * slowness()}});
  database.server().take_writes(false);
  REQUIRE(eventually([&] { return thrown_by([&] { engine.try_lock("job"); }).names("read-only"); }));
  std::atomic<int> told{0};
  in_parallel(12, [&](int i) {
    const auto name = "job " + std::to_string(i);
    const auto thrown =
        thrown_by([&] { i % 3 == 0 ? engine.try_lock(name) : engine.try_lock_for(name, 3s * slowness()); });
    const bool named = thrown.names("read-only");
    if (named) ++told;
    // In doubt where the time was over before a request was answered; it may have been the first one.
    CHECK_MESSAGE((thrown.fault == Fault::in_doubt || (named && thrown.fault == Fault::unavailable)),
                  i << ": " << thrown.text);
  });
  CHECK(told >= 6);
  database.server().take_writes(true);
}

TEST_CASE("callers with time live through a restart: no error reaches them, and nothing stays held") {
  const auto test_database = failing().test_database();
  Engine::install_schema(test_database->url());
  Engine engine(test_database->url(), {.timeouts = {.request = 4min, .release = 4min}});
  std::atomic<int> rounds{0};
  std::atomic<bool> done{false};
  auto caller = std::async(std::launch::async, [&] {
    while (!done) {
      auto lock = engine.try_lock_for("job", 4min);
      REQUIRE(lock);
      CHECK(lock->release() != Released::unconfirmed);
      ++rounds;
    }
  });
  REQUIRE(eventually([&] { return rounds > 5; }));
  failing().stop();
  failing().start();
  const int before = rounds;
  CHECK(eventually([&] { return rounds > before + 5; }, std::max<std::chrono::milliseconds>(60s, far_longer())));
  done = true;
  CHECK_NOTHROW(caller.get());
  CHECK(engine.inspect("job")->owner.empty());
}
