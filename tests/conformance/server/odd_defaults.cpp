// This file knows the promise that whatever defaults a server gives its connections change nothing.
#include "api/open.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/news.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What this process writes to its standard error while one of these lives is kept from it, and counted.
class StandardError {
 public:
  ~StandardError() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(kept_);
  }
  StandardError() : before_(::dup(STDERR_FILENO)), kept_(::memfd_create("standard error", MFD_CLOEXEC)) {
    REQUIRE(before_ >= 0);
    REQUIRE(::dup2(kept_, STDERR_FILENO) >= 0);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

  long long bytes() const {
    struct stat about{};
    return ::fstat(kept_, &about) == 0 ? about.st_size : -1;
  }

 private:
  const int before_, kept_;
};

}  // namespace

TEST_CASE("on a server with odd defaults locks are granted, refused, renewed, taken over, released and reaped") {
  const auto server = opener().private_server();
  ServerDatabase database(server->place());
  database.server().use_odd_defaults();
  auto engine = database->engine({.retention = 50ms, .grace = 50ms});
  auto other = database->engine();
  const std::string metadata = "it's \\ \"x\" \xC3\x89 \xF0\x9F\x98\x80 \\' -- ";
  const auto lease = 600ms * slowness();
  auto lock = engine.try_lock("job", {.lease = lease, .metadata = metadata});
  REQUIRE(lock);
  Holder who;
  CHECK_FALSE(other.try_lock("job", {}, &who));
  CHECK(who.owner == lock->owner());
  CHECK(who.metadata == metadata);
  const auto begun = database->admin().acquired_at("job");
  CHECK(database->admin().expires_at("job") >= begun + lease);
  CHECK(eventually([&] { return database->admin().expires_at("job") > begun + 2 * lease; }));
  CHECK(lock->valid());
  lock->extend(1h);
  CHECK(database->admin().expires_at("job") > begun + 59min);
  CHECK(lock->release() == Released::freed);

  auto gone = other.try_lock("job", {.at_least = 10min, .renew = false});
  REQUIRE(gone);
  const auto token = gone->detach().token;
  CHECK_FALSE(engine.try_lock("job"));
  database->admin().age("job", 1h);
  const auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(number(next->token()) == number(token) + 1);
  CHECK(database->admin().expires_at("job") >= database->admin().acquired_at("job") + 30s);
  CHECK(database->admin().reopens_at("job") == Duration{});

  CHECK(engine.try_lock("caf\xC3\xA9 '\\")->token() > Token{});
  CHECK(engine.list("caf*").size() == 1);
  database->admin().run("UPDATE resource_lock SET acquired_at = 0, expires_at = 0 WHERE owner IS NULL AND name <> ''");
  CHECK(eventually([&] { return engine.reap().removed == 1; }));
  CHECK(engine.list().size() == 1);
}

TEST_CASE("on a server that is set to forget, the engine's own commits are durable") {
  const auto server = opener().private_server();
  ServerDatabase database(server->place());
  database.server().use_odd_defaults();
  const auto door = api::find_door(database->url(), {});
  const auto deadline = later(BootClock::now(), far_longer());
  const auto weaknesses = door.connector->connect(deadline)->weaknesses(deadline);
  for (const auto& weakness : weaknesses) CHECK_MESSAGE(false, weakness);
  News news;
  { auto engine = database->engine({.observer = news.observer()}); }  // its destructor delivers what is to be told
  CHECK_FALSE(news.has(Event::Kind::weak_durability));
}

TEST_CASE("what a server notes in passing is not printed to the program's standard error") {
  const auto server = opener().private_server();
  ServerDatabase database(server->place());
  database.server().use_odd_defaults();
  const StandardError standard_error;
  {
    auto engine = database->engine();
    auto other = database->engine();
    auto lock = engine.try_lock("job");
    REQUIRE(lock);
    auto waiting = std::async(std::launch::async, [&] { return other.lock("job"); });
    const char* const wanted = "SELECT count(*) FROM resource_lock WHERE wanted_until > 0";
    CHECK(eventually([&] { return database->admin().number(wanted) == 1; }));
    CHECK(lock->release() == Released::freed);
    CHECK(waiting.get().release() == Released::freed);
  }
  CHECK(standard_error.bytes() == 0);
}
