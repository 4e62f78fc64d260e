// The promise that a thousand threads that wait for one name are one voice to the database.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stop_token>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("threads that wait for one name cost a few statements a second, no connection each, and end at once") {
  constexpr int count = 1000;
  ServerDatabase database;
  const Proxy proxy(database.server());
  auto holder = database->engine();
  Engine engine(database.server().url_at(proxy.address()),
                {.timeouts = {.connect = 10s * slowness(), .request = 5s * slowness()}});
  const auto lock = holder.try_lock("job");
  REQUIRE(lock);
  std::atomic<int> begun = 0, ended = 0, granted = 0;
  std::stop_source stop;
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      ++begun;
      if (engine.lock(stop.get_token(), "job", {.reentrance = Reentrance::none})) ++granted;
      ++ended;
    });
  REQUIRE(eventually([&] { return begun == count && !engine.waiters("job").empty(); }));
  // Whoever came before there was a line has asked once by itself: that may go on for a while.
  CHECK(eventually([&] {
    const auto before = proxy.requests();
    const Stopwatch time;
    std::this_thread::sleep_for(3s);
    const auto seconds = static_cast<double>(time.elapsed().count()) / 1e6;
    const auto rate = static_cast<double>(proxy.requests() - before) / seconds;
    MESSAGE(rate << " statements a second");
    return rate < 20;
  }));
  CHECK(proxy.connections() <= 6);  // of the pool, to listen, and one or the other opened again
  const Stopwatch farewell;
  stop.request_stop();
  threads.clear();
  CHECK(farewell.elapsed() < 20s * slowness());
  CHECK(ended == count);
  CHECK(granted == 0);
}
