// The promise that coroutines are told of a server that is away, and leave one that is silent at once.
#include "support/coroutine.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/loop.hpp"
#include "support/proxy.hpp"

#include <dlock/coroutine.hpp>

#include <doctest/doctest.h>

#include <asio.hpp>
#include <dlock/asio.hpp>

#include <optional>
#include <stop_token>
#include <string>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

const auto late = 2s * slowness();

// An engine that was connected, and whose every call may take long.
struct Reached {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Loop loop{};
  Engine engine{database.server().url_at(proxy.address()),
                {.timeouts = {.request = 20s * slowness(), .release = 400ms}, .executor = loop.executor()}};
  Reached() { engine.try_lock("warm").reset(); }
};

}  // namespace

TEST_CASE("a coroutine is told that the database is unavailable, where it waits") {
  Reached reached;
  reached.proxy.refuse();
  std::optional<Fault> told;
  const auto waits = [](Engine& locks, std::optional<Fault>& fault) -> Coroutine {
    try {
      const auto lock = co_await dlock::try_lock_for(locks, "job", 300ms);
    } catch (const Error& error) { fault = error.fault(); }
  }(reached.engine, told);
  CHECK(reached.loop.run_until([&] { return waits.done(); }));
  REQUIRE(told);
  CHECK((*told == Fault::unavailable || *told == Fault::in_doubt || *told == Fault::timeout));
  reached.proxy.pass();
}

TEST_CASE("a coroutine that is stopped while the server is silent goes on at once, and one that is destroyed is gone") {
  Reached reached;
  reached.proxy.black_hole();
  std::stop_source stop;
  const Stopwatch time;
  {
    const auto ask = [](Engine& locks, std::string name, std::stop_token token) -> Coroutine {
      const LockOptions usual;
      const auto lock = co_await dlock::lock(locks, name, usual, token);
      CHECK_FALSE(lock);
    };
    const auto stopped = ask(reached.engine, "one", stop.get_token());
    const auto destroyed = ask(reached.engine, "other", std::stop_token());
    reached.loop.run();
    CHECK_FALSE(stopped.done());
    stop.request_stop();
    REQUIRE(reached.loop.run_until([&] { return stopped.done(); }));
    stopped.check();
  }
  CHECK(time.elapsed() < late);
  reached.proxy.cut();
  reached.proxy.pass();
  CHECK(reached.loop.run_until([&] { return reached.engine.stats().waiting.empty(); }));
}

TEST_CASE("a handler of Asio that is cancelled while the server is silent is called at once") {
  Reached reached;
  reached.proxy.black_hole();
  asio::io_context context;
  asio::cancellation_signal signal;
  bool aborted = false;
  const Stopwatch time;
  async_lock(reached.engine, "job",
             asio::bind_cancellation_slot(signal.slot(),
                                          asio::bind_executor(context, [&](std::exception_ptr failure, const Lock&) {
                                            try {
                                              if (failure) std::rethrow_exception(std::move(failure));
                                            } catch (const std::system_error& error) {
                                              aborted = error.code() == asio::error::operation_aborted;
                                            }
                                          })));
  asio::post(context, [&] { signal.emit(asio::cancellation_type::total); });
  REQUIRE(reached.loop.run_until([&] {
    context.poll();
    return aborted;
  }));
  CHECK(time.elapsed() < late);
  reached.proxy.cut();
  reached.proxy.pass();
}
