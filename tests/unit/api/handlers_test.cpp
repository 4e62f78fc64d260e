// What becomes of handlers that have not been called when their engine ends.
#include "api/handlers.hpp"

#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using dlock::BootClock;
using dlock::later;
using dlock::api::Handlers;
using dlock::test::eventually;

TEST_CASE("handlers whose turn has not come at the end of their time are never called, and those posted at last are") {
  for (const bool blocks : {true, false}) {
    INFO("one blocks: " << blocks);
    auto handlers = std::make_shared<Handlers>(Handlers::Executor{});
    handlers->prepare();
    std::promise<void> gate;
    std::atomic<bool> begun = false;
    std::atomic<int> called = 0;
    handlers->post([&, open = gate.get_future().share()] {
      begun = true;
      if (blocks) open.wait();
    });
    REQUIRE(eventually([&] { return begun.load(); }));
    auto posted = std::make_shared<int>();
    const std::weak_ptr<int> waiting = posted;
    handlers->post([&called, posted] { ++called; });
    posted = nullptr;
    handlers->finish_soon(blocks ? later(BootClock::now(), -1s) : dlock::Instant::max());
    CHECK(called == (blocks ? 0 : 1));
    gate.set_value();
    CHECK(eventually([&] { return waiting.expired(); }));
    CHECK(called == (blocks ? 0 : 1));
    if (!blocks) continue;
    handlers->post([&called] { ++called; });
    CHECK(called == 0);
  }
}

TEST_CASE("at its end what is under way on the executor has returned, and the executor is called no more") {
  std::promise<void> gate;
  std::atomic<bool> under_way = false, returned = false;
  std::atomic<int> called = 0;
  auto handlers = std::make_shared<Handlers>([&](const std::function<void()>& handler) {
    ++called;
    under_way = true;
    gate.get_future().wait();
    handler();
    returned = true;
  });
  std::jthread late([&] { handlers->post([] {}); });
  REQUIRE(eventually([&] { return under_way.load(); }));
  std::jthread opens([&] {
    std::this_thread::sleep_for(20ms);
    gate.set_value();
  });
  handlers->finish_soon(dlock::Instant::max());
  CHECK(returned);
  handlers->post([] {});
  CHECK(called == 1);
}

TEST_CASE("whoever is called by the executor at once may end what calls it") {
  std::shared_ptr<Handlers> handlers;
  handlers = std::make_shared<Handlers>([](const std::function<void()>& handler) { handler(); });
  bool ended = false;
  handlers->post([&] {
    handlers->finish_soon(later(BootClock::now(), 1h));
    ended = true;
  });
  CHECK(ended);
}
