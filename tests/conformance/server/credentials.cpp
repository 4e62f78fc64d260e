// The promise that EngineOptions::credentials says who logs in, before each connect, and that one that
// throws, hangs or makes no sense does no harm.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Comes back when it is let go; its destructor lets it go. An engine may end before that comes back.
class Gate {
 public:
  ~Gate() { open(); }
  void close() { state_->closed = true; }
  void open() {
    if (!state_->opened.exchange(true)) state_->opening.count_down();
  }
  int calls() const { return state_->calls; }
  std::function<Credentials()> credentials() const {
    return [state = state_]() -> Credentials {
      ++state->calls;
      if (state->closed) state->opening.wait();
      return {};
    };
  }

 private:
  struct State {
    std::atomic<bool> closed = false, opened = false;
    std::atomic<int> calls = 0;
    std::latch opening{1};
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

bool is_late(const Error& error) {
  return error.fault() == Fault::unavailable || error.fault() == Fault::timeout || error.fault() == Fault::in_doubt;
}

Thrown refusal(const std::string& url, std::function<Credentials()> credentials) {
  return thrown_by([&] { Engine engine(url, {.credentials = std::move(credentials)}); });
}

}  // namespace

TEST_CASE("before a connect the program is asked, and while a connection is there it is not") {
  ServerDatabase database;
  std::atomic<int> calls = 0;
  Engine engine(database->url(), {.credentials = [&]() -> Credentials {
                  ++calls;
                  return {};
                }});
  CHECK(calls == 1);
  CHECK(engine.try_lock("job").has_value());
  CHECK(calls == 1);
}

TEST_CASE("user and password of the URL are replaced by those that are told") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({"SELECT", "INSERT", "UPDATE", "DELETE"});
  const auto at = url.find('@'), begin = url.find("//") + 2, colon = url.find(':', begin);
  const Credentials told{url.substr(begin, colon - begin), url.substr(colon + 1, at - colon - 1)};
  const auto nobody = url.substr(0, begin) + "nobody:wrong" + url.substr(at);
  Engine engine(nobody, {.credentials = [&] { return told; }});
  CHECK(engine.try_lock("job").has_value());
  CHECK(refusal(nobody, [&] { return Credentials{{}, told.password}; }).fault == Fault::permission);
  const auto wrong = refusal(url, [] { return Credentials{{}, "s3cret-and-wrong"}; });
  CHECK(wrong.fault == Fault::permission);
  CHECK_MESSAGE(!wrong.names("s3cret"), wrong.text);
}

TEST_CASE("a table is made and looked at as who is told") {
  ServerDatabase database;
  std::atomic<int> calls = 0;
  const auto credentials = [&]() -> Credentials {
    ++calls;
    return {};
  };
  Engine::install_schema(database->url(), {.credentials = credentials});
  CHECK(calls >= 1);
  const auto before = calls.load();
  CHECK(schema::check(database->url(), {.credentials = credentials}).state == schema::SchemaState::good);
  CHECK(calls > before);
}

TEST_CASE("what is thrown instead of credentials is told, and they are asked for again") {
  ServerDatabase database;
  std::atomic<bool> sealed = true;
  const auto credentials = [&]() -> Credentials {
    if (sealed) throw std::runtime_error("the vault is sealed");
    return {};
  };
  const auto thrown = refusal(database->url(), credentials);
  CHECK(thrown.fault == Fault::unavailable);
  CHECK_MESSAGE(thrown.names("EngineOptions::credentials"), thrown.text);
  CHECK_MESSAGE(thrown.names("the vault is sealed"), thrown.text);
  sealed = false;
  Engine engine(database->url(), {.credentials = credentials});
  CHECK(engine.try_lock("job").has_value());
  CHECK(refusal(database->url(), []() -> Credentials { throw std::runtime_error(""); }).fault == Fault::unavailable);
  CHECK(refusal(database->url(), []() -> Credentials { throw 7; }).fault == Fault::unavailable);
}

TEST_CASE("a zero byte in a password is refused, not the end of it") {
  ServerDatabase database;
  const auto thrown = refusal(database->url(), [] { return Credentials{{}, std::string("s3cret\0and more", 15)}; });
  CHECK(thrown.fault == Fault::misuse);
  CHECK_MESSAGE(thrown.names("zero byte"), thrown.text);
  CHECK_MESSAGE(!thrown.names("s3cret"), thrown.text);
}

TEST_CASE("credentials that do not come hold up nobody for longer than what they were asked for") {
  ServerDatabase database;
  Gate gate;
  gate.close();
  const Stopwatch time;
  const auto thrown = thrown_by([&] {
    Engine engine(database->url(),
                  {.timeouts = {.connect = 300ms, .request = 300ms}, .credentials = gate.credentials()});
  });
  CHECK(thrown.fault == Fault::unavailable);
  CHECK_MESSAGE(thrown.names("did not return in time"), thrown.text);
  CHECK(time.elapsed() < 3s * slowness());
  CHECK(gate.calls() == 1);
}

TEST_CASE("however many wait for credentials that do not come, one is asked, and each ends with its own deadline") {
  ServerDatabase database;
  Gate gate;
  auto engine = database->engine({.connections = 4, .timeouts = {.request = 2s}, .credentials = gate.credentials()});
  gate.close();
  engine.try_lock("job").reset();
  std::atomic<int> over = 0;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 6; ++i)
    callers.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) {
        try {
          static_cast<void>(engine.try_lock_for("name " + std::to_string(i), 200ms));
        } catch (const Error& error) { CHECK_MESSAGE(is_late(error), error.what()); }
      }
      ++over;
    });
  CHECK(eventually([&] { return over == 6; }));
  CHECK(gate.calls() <= 2);
  gate.open();  // who has lost its connection meanwhile needs another one
  CHECK(eventually([&] { return database->admin().held() == 0; }));  // what was released late
}

TEST_CASE("a program that asks its own engine for credentials is told so, and does not hang") {
  ServerDatabase database;
  std::unique_ptr<Engine> engine;
  std::atomic<bool> told = false;
  std::atomic<Engine*> ready = nullptr;
  engine = std::make_unique<Engine>(
      database->url(), EngineOptions{.connections = 1, .listen = false, .credentials = [&]() -> Credentials {
                                       if (auto* mine = ready.load()) {
                                         const auto thrown = thrown_by([&] { mine->lock("job").release(); });
                                         told = thrown.fault == Fault::misuse && thrown.names("calls the engine");
                                       }
                                       return {};
                                     }});
  ready = engine.get();
  CHECK(eventually([&] {
    database.server().disconnect_everybody();
    try {
      engine->try_lock("other").reset();
    } catch (const Error& error) { CHECK_MESSAGE((is_late(error) || told), error.what()); }
    return told.load();
  }));
}

TEST_CASE("the end of an engine waits for its credentials, but not for longer than request_timeout") {
  ServerDatabase database;
  Gate gate;
  std::atomic<bool> enough = false;
  std::jthread caller;
  const auto patience = 500ms;
  Stopwatch time;
  {
    auto engine = std::make_shared<Engine>(
        database->url(),
        EngineOptions{.connections = 4, .timeouts = {.request = patience}, .credentials = gate.credentials()});
    gate.close();
    caller = std::jthread([engine, &enough, &gate] {
      while (!enough && gate.calls() < 2)
        in_parallel(4, [&](int i) {
          try {
            engine->try_lock("name " + std::to_string(i)).reset();
          } catch (const Error& error) { CHECK_MESSAGE(is_late(error), error.what()); }
        });
    });
    CHECK(eventually([&] { return gate.calls() == 2; }));
    enough = true;
    caller.join();
    time = Stopwatch();
  }
  CHECK(time.elapsed() < 2 * patience + 2s * slowness());
  database->admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''");  // what nobody had time to give back
}
