// Promises of a cluster whose servers all take writes, to who waits and to who wants to know what is durable: a release
// on one server is seen on the others by looking, and none of them is a standby that a failover would go to.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <future>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> urls_of_all(ServerDatabase& database) {
  std::vector<std::string> urls{database->url()};
  for (const auto& peer : database.server().peers()) urls.push_back(database.server().url_at(peer));
  REQUIRE(urls.size() > 1);
  return urls;
}

// What an engine tells of durability when it opens.
std::vector<std::string> told_at(const std::string& url) {
  EventLog news;
  { Engine engine(url, {.timeouts = {.request = 30s}, .observer = news.observer()}); }  // its destructor delivers it
  std::vector<std::string> texts;
  for (const auto& item : news.of(Event::Kind::weak_durability)) texts.push_back(item.text);
  return texts;
}

// The first server forgets in a crash while it lives; others use the cluster after this case.
class Forgetful {
 public:
  explicit Forgetful(ServerDatabase& database)
      : admin_(database->admin()), setting_(database.server().make_forgetful()) {}
  ~Forgetful() { admin_.run("SET GLOBAL " + setting_ + " = 1"); }
  Forgetful(const Forgetful&) = delete;
  Forgetful& operator=(const Forgetful&) = delete;
  const std::string& setting() const { return setting_; }

 private:
  Admin& admin_;
  const std::string setting_;
};

}  // namespace

TEST_CASE("who waits on one server of a cluster has what is released on another by its next look") {
  ServerDatabase database;
  const auto urls = urls_of_all(database);
  const EngineOptions options{.timeouts = {.request = 30s, .release = 30s}};
  const Duration longest = options.polling.longest * 5 / 4;
  for (std::size_t from = 0; from < urls.size(); ++from) {
    Engine holder(urls[from], options), waiter(urls[(from + 1) % urls.size()], options);
    for (int round = 0; round < 3; ++round) {
      CAPTURE(round);
      auto lock = holder.lock("job", {.lease = 10min});
      auto wait = std::async(std::launch::async, [&] { return waiter.try_lock_for("job", 2min).has_value(); });
      REQUIRE(eventually([&] { return waiter.stats().waiting["job"] == 1; }));
      // As long as it takes until the looks are as rare as they get.
      CHECK(wait.wait_for(2s) == std::future_status::timeout);
      const Stopwatch time;
      CHECK(lock.release() == Released::freed);
      CHECK(wait.get());
      MESSAGE("woke after " << time.elapsed().count() << " us");
      CHECK(time.elapsed() < longest + 1s * slowness());
    }
  }
}

TEST_CASE("a failover is no danger in a cluster, and not told of: only what a server itself forgets is") {
  ServerDatabase database;
  for (const auto& url : urls_of_all(database))
    for (const auto& text : told_at(url)) FAIL_CHECK(text);
  EventLog news;
  Engine engine(database->url(), {.timeouts = {.request = 30s}, .observer = news.observer()});
  const auto reconnect = [&] {
    const auto before = news.of(Event::Kind::reconnected).size();
    database.server().disconnect_everybody();
    CHECK(eventually([&] {
      static_cast<void>(thrown_by([&] { engine.try_lock("job").reset(); }));
      return news.of(Event::Kind::reconnected).size() > before;
    }));
  };
  reconnect();
  for (const auto& item : news.of(Event::Kind::weak_durability)) FAIL_CHECK(item.text);
  const Forgetful forgetful(database);
  const auto told = told_at(database->url());
  REQUIRE(told.size() == 1);
  CHECK_MESSAGE(told.front().find(forgetful.setting()) != std::string::npos, told.front());
  reconnect();
  CHECK(news.comes(Event::Kind::weak_durability));
}
