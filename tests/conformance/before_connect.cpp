// This file knows the promise that EngineOptions::before_connect decides what each connect goes by, and that one that
// throws, hangs or leads astray does no harm.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// A hook that comes back when it is let go; its destructor lets it go.
struct Gate {
  ~Gate() { open(); }
  void open() {
    if (!opened.exchange(true)) opening.count_down();
  }
  std::function<void(ConnectSettings&)> hook() {
    return [this](ConnectSettings&) {
      ++calls;
      if (closed) opening.wait();
    };
  }

  std::atomic<bool> closed = false, opened = false;
  std::atomic<int> calls = 0;
  std::latch opening{1};
};

bool is_late(const Error& error) {
  return error.fault() == Fault::unavailable || error.fault() == Fault::timeout || error.fault() == Fault::in_doubt;
}

}  // namespace

TEST_CASE("before each connect the hook is asked, with the URL of the engine, and what it leaves is used") {
  Database database;
  std::atomic<int> calls = 0;
  Engine engine(database.url(), {.before_connect = [&](ConnectSettings& settings) {
                  ++calls;
                  CHECK(settings.url == database.url());
                  CHECK_FALSE(settings.user);
                  CHECK_FALSE(settings.password);
                }});
  CHECK(calls == 1);
  CHECK(engine.try_lock("job").has_value());
  CHECK(calls == 1);  // the connection is still there
}

TEST_CASE("a table is made, looked at and migrated by what the hook says") {
  Database database;
  std::atomic<int> calls = 0;
  const auto hook = [&](ConnectSettings& settings) {
    ++calls;
    settings.url = database.url();
  };
  Engine::install_schema(database.url(), {.before_connect = hook});
  CHECK(calls == 1);
  CHECK(schema::check(database.url(), {.before_connect = hook}).verdict == schema::Verdict::good);
  CHECK(calls == 2);
}

TEST_CASE("what the hook throws is told, and it is asked again") {
  Database database;
  std::atomic<bool> broken = true;
  const auto hook = [&](ConnectSettings&) {
    if (broken) throw std::runtime_error("the vault is sealed");
  };
  const auto thrown = thrown_by([&] { Engine engine(database.url(), {.before_connect = hook}); });
  CHECK(thrown.fault == Fault::unavailable);
  CHECK_MESSAGE(thrown.names("before_connect"), thrown.text);
  CHECK_MESSAGE(thrown.names("the vault is sealed"), thrown.text);
  broken = false;
  Engine engine(database.url(), {.before_connect = hook});
  CHECK(engine.try_lock("job").has_value());
}

TEST_CASE("what is thrown that is no exception of the standard's is told as well") {
  Database database;
  const auto thrown =
      thrown_by([&] { Engine engine(database.url(), {.before_connect = [](ConnectSettings&) { throw 7; }}); });
  CHECK(thrown.fault == Fault::unavailable);
  CHECK_MESSAGE(thrown.names("before_connect"), thrown.text);
}

TEST_CASE("a hook that hangs holds up nobody for longer than what it was asked for") {
  Database database;
  Gate gate;
  gate.closed = true;
  const Stopwatch time;
  const auto thrown = thrown_by([&] {
    Engine engine(database.url(), {.connect_timeout = 300ms, .request_timeout = 300ms, .before_connect = gate.hook()});
  });
  CHECK(thrown.fault == Fault::unavailable);
  CHECK_MESSAGE(thrown.names("before_connect did not return in time"), thrown.text);
  CHECK(time.elapsed() < 3s * slowness());
  CHECK(gate.calls == 1);
}

TEST_CASE(
    "while one connection is at work, a hook that hangs ends with the deadline, or the stop, of who waits for it") {
  Database database;
  Gate gate;
  auto engine = database.engine({.connections = 4, .request_timeout = 2s, .before_connect = gate.hook()});
  gate.closed = true;
  engine.try_lock("job").reset();
  std::atomic<int> over = 0;
  std::stop_source stop;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 6; ++i)
    callers.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) {
        try {
          static_cast<void>(engine.try_lock_for("name " + std::to_string(i), 200ms, {}, stop.get_token()));
        } catch (const Error& error) { CHECK_MESSAGE(is_late(error), error.what()); }
      }
      ++over;
    });
  CHECK(eventually([&] { return over == 6; }));
  CHECK(gate.calls <= 2);  // for all of them: one hangs, and nobody else is asked
  gate.open();
}

TEST_CASE("a URL of another kind of database, or none at all, is refused, and shown without its password") {
  Database database;
  for (const std::string url :
       {"nosuch://app:s3cret@host/db", "app:s3cret@host/db", "", "sqlite://app:s3cret@host/file"}) {
    CAPTURE(url);
    const auto thrown = thrown_by([&] {
      Engine engine(database.url(), {.before_connect = [&](ConnectSettings& settings) { settings.url = url; }});
    });
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
    CHECK_MESSAGE(thrown.names("before_connect"), thrown.text);
    CHECK_MESSAGE(!thrown.names("s3cret"), thrown.text);
  }
}

TEST_CASE("a URL that leads to another installation of the table is refused, and nothing is granted there") {
  // Of another server: on one that calls schemas databases, another one still has the first one's table.
  const auto server = opener().private_server == nullptr ? nullptr : opener().private_server();
  Database database, other(server ? server->place() : opener().place());
  std::atomic<bool> astray = false;
  auto engine = database.engine({.connections = 4, .before_connect = [&](ConnectSettings& settings) {
                                   if (astray) settings.url = other.url();
                                 }});
  const auto held = engine.try_lock("job");
  REQUIRE(held);
  astray = true;
  // One of them is at work on the connection that there is; the others need their own.
  std::atomic<bool> refused = false;
  in_parallel(8, [&](int i) {
    CHECK(eventually([&] {
      try {
        engine.try_lock("name " + std::to_string(i)).reset();
      } catch (const Error& error) {
        const std::string text = error.what();
        const bool no_table = error.fault() == Fault::schema;
        const bool another = error.fault() == Fault::misuse && text.find("another installation") != std::string::npos;
        CHECK_MESSAGE((no_table || another), text);
        refused = true;
      }
      return refused.load();
    }));
  });
  CHECK(other.admin().held() == 0);
  CHECK(other.admin().number("SELECT count(*) FROM resource_lock WHERE name <> ''") == 0);
  CHECK(held->valid());
}

TEST_CASE("the end of an engine waits for its hook, but not for longer than request_timeout") {
  Database database;
  Gate gate;
  std::atomic<bool> out_of_time = false;
  std::jthread caller;
  const auto patience = 500ms;
  Stopwatch time;
  {
    auto engine = std::make_shared<Engine>(
        database.url(), EngineOptions{.connections = 4, .request_timeout = patience, .before_connect = gate.hook()});
    gate.closed = true;
    caller = std::jthread([engine, &out_of_time, &gate] {
      while (!out_of_time && gate.calls < 2)
        in_parallel(4, [&](int i) {
          try {
            engine->try_lock("name " + std::to_string(i)).reset();
          } catch (const Error& error) { CHECK_MESSAGE(is_late(error), error.what()); }
        });
    });
    CHECK(eventually([&] { return gate.calls == 2; }));
    out_of_time = true;
    caller.join();
    time = Stopwatch();
  }
  CHECK(time.elapsed() < patience + 2s * slowness());
}
