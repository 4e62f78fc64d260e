// Promises of prepared=off in the URL, which every command takes: nothing is prepared then, and through a pooler each
// does its work and leaves nothing behind.
#include "support/database.hpp"
#include "support/lent_sessions.hpp"
#include "support/proxy.hpp"
#include "tools/command.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;

namespace {

std::string prepared(const std::string& url, const std::string& word) {
  return url + (url.find('?') == std::string::npos ? "?" : "&") + "prepared=" + word;
}

Ran succeeds(const Ran& ran, const std::string& command) {
  CHECK_MESSAGE(ran.code == 0, command << ": " << ran.out);
  return ran;
}

// Every command that asks the database, with the URL that `url` has for it, each good for what comes after it.
void use_every_command(const std::function<std::string(const std::string& command)>& url) {
  const auto dlock = [&](std::vector<std::string> words) {
    const auto at = url(words.front());
    const auto name = words.front();
    return succeeds(dlock_tool(at, std::move(words)), name);
  };
  const auto migrator = [&](std::vector<std::string> words) {
    const auto name = "migrate " + words.front();
    words.insert(words.end(), {"-u", url(name)});
    succeeds(migrate(words), name);
  };
  for (const char* word : {"status", "plan", "up", "check", "repair"}) migrator({word});
  const auto taken = dlock({"acquire", "-n", "job", "--ttl", "5m"});
  const auto token = taken.out.substr(0, taken.out.find('\n'));
  CHECK(dlock({"list"}).says("job"));
  CHECK(dlock({"inspect", "job"}).says("job"));
  CHECK(dlock({"top", "-n", "1"}).says("job"));
  dlock({"renew", "job", "--token", token});
  dlock({"release", "job", "--token", token});
  CHECK(dlock({"run", "-n", "other", "--", "echo", "at work"}).says("at work"));
  dlock({"reap"});
}

}  // namespace

TEST_CASE("with prepared=off in the URL no command has a statement prepared, and without it those of dlock do") {
  ServerDatabase database;
  for (const std::string word : {"on", "off"}) {
    CAPTURE(word);
    std::string last;
    std::unique_ptr<Proxy> proxy;
    const auto look = [&] {
      if (!proxy) return;
      const bool expected = word == "on" && !last.starts_with("migrate ");
      CHECK_MESSAGE(database.server().has_prepared(proxy->sent()) == expected, last);
      CHECK_MESSAGE(proxy->requests() > 0, last);
    };
    use_every_command([&](const std::string& command) {
      look();
      last = command;
      proxy = std::make_unique<Proxy>(database.server());
      return prepared(database.server().url_at(proxy->address()), word);
    });
    look();
  }
}

TEST_CASE("through a pooler every command does its work with prepared=off and leaves nothing in the sessions") {
  ServerDatabase database;
  const auto pooler = database.server().pooler();
  if (!pooler) return;  // nothing is lent here
  for (const std::string word : {"on", "off"}) {
    CAPTURE(word);
    LentSessions application(database.server(), *pooler);
    const auto before = application.state(database.server());
    use_every_command([&](const std::string&) { return prepared(database.server().url_at(*pooler), word); });
    CHECK(application.state(database.server()) == before);
    CHECK(database.server().locks_held() == 0);
  }
}
