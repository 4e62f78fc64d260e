// The promise that every way to a server leads there: each way to log in, the unix socket, IPv6, and with
// passwords of any characters, that may change while an engine is at work.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "types/url.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// All that a keyboard has, and more.
std::vector<std::string> odd_passwords() {
  std::string ascii, second;
  for (char c = ' '; c <= '~'; ++c) (ascii.size() < 48 ? ascii : second) += c;
  return {ascii,       second, "p\xc3\xa4ss w\xc3\xb6rd \xe2\x82\xac", "\t\x01\x7f", "%41%zz%", "a:b@c/d?e#f&g=h",
          "'\"\\`$(x)"};
}

std::string percent_encoded(const std::string& text) {
  std::string encoded;
  for (const unsigned char c : text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    encoded += '%';
    encoded += digits[c / 16];
    encoded += digits[c % 16];
  }
  return encoded;
}

// The URL with another password, which is written as it stands in a URL.
std::string with_password(const std::string& url, const std::string& encoded) {
  const auto from = url.find(':', url.find("//")) + 1, to = url.find('@');
  return url.substr(0, from) + encoded + url.substr(to);
}

}  // namespace

TEST_CASE(
    "a password may have every character, in the URL percent-encoded, and from EngineOptions::credentials as it is") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({"SELECT", "INSERT", "UPDATE", "DELETE"});
  for (const auto& password : odd_passwords()) {
    CAPTURE(password);
    database.server().use_password(password);
    const auto good = with_password(url, percent_encoded(password));
    REQUIRE(Url::parse(good).password == password);
    CHECK(Engine(good).try_lock("job").has_value());
    const auto told = [&] { return Credentials{{}, password}; };
    CHECK(Engine(with_password(url, "stale"), {.credentials = told}).try_lock("job").has_value());
    // Whatever goes wrong, nobody reads it.
    const auto refused = thrown_by([&] { Engine other(with_password(url, percent_encoded(password + "x"))); });
    CHECK(refused.fault == Fault::permission);
    CHECK_MESSAGE(!refused.names(password), refused.text);
    CHECK_MESSAGE(!refused.names(percent_encoded(password)), refused.text);
  }
}

TEST_CASE("a password that is rotated while a lock is held costs neither the lock nor a call") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({"SELECT", "INSERT", "UPDATE", "DELETE"});
  std::mutex mutex;
  std::string password = "of_a_role";
  std::atomic<int> asked = 0;
  Engine engine(url, {.timeouts = {.request = 20s * slowness(), .release = 10s * slowness()}, .credentials = [&] {
                        ++asked;
                        const std::lock_guard guard(mutex);
                        return Credentials{{}, password};
                      }});
  auto held = engine.try_lock("job", {.lease = 20s * slowness()});
  REQUIRE(held);
  for (int rotation = 0; rotation < 3; ++rotation) {
    const auto before = asked.load();
    {
      const std::lock_guard guard(mutex);
      password = "rotated:" + std::to_string(rotation) + "@/%";
      database.server().use_password(password);
    }
    database.server().disconnect_everybody();
    CHECK(engine.try_lock("other").has_value());
    CHECK(asked > before);
    held->extend(20s * slowness());
  }
  CHECK(held->valid());
  CHECK(held->release() == Released::freed);
}

TEST_CASE("who waits is woken by a release although all passwords were rotated since it began to wait") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({"SELECT", "INSERT", "UPDATE", "DELETE"});
  std::mutex mutex;
  std::string password = "of_a_role";
  const EngineOptions options{.timeouts = {.request = 20s * slowness(), .release = 10s * slowness()},
                              .credentials = [&] {
                                const std::lock_guard guard(mutex);
                                return Credentials{{}, password};
                              }};
  Engine holder(url, options), waiter(url, options);
  auto held = holder.try_lock("job");
  REQUIRE(held);
  std::atomic<bool> granted = false;
  std::jthread waiting([&] { granted = waiter.try_lock_for("job", 10min).has_value(); });
  REQUIRE(eventually([&] { return waiter.stats().waiting.size() == 1; }));
  {
    const std::lock_guard guard(mutex);
    password = "rotated";
    database.server().use_password(password);
  }
  database.server().disconnect_everybody();
  CHECK(held->release() != Released::was_lost);
  CHECK(eventually([&] { return granted.load(); }));
}

TEST_CASE("each way to log in that the server knows is good") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({"SELECT", "INSERT", "UPDATE", "DELETE"});
  for (const auto& way : database.server().ways_to_log_in()) {
    CAPTURE(way);
    database.server().use_way_to_log_in(way, "known-by-" + way);
    CHECK(Engine(with_password(url, "known-by-" + way)).try_lock("job").has_value());
    CHECK(thrown_by([&] { Engine engine(with_password(url, "unknown")); }).fault == Fault::permission);
  }
}

TEST_CASE("the unix socket leads to the same locks as the network") {
  ServerDatabase database;
  Engine near(database.server().url_by_socket());
  auto far = database->engine();
  const auto lock = near.try_lock("job");
  REQUIRE(lock);
  CHECK_FALSE(far.try_lock("job"));
}

TEST_CASE("an address of IPv6 leads to the same locks as one of IPv4") {
  const auto server = opener().server_with(opener().listens_everywhere);
  ServerDatabase database(server->test_database());
  Engine six(database.server().url_at({"[::1]", database.server().address().port}));
  auto four = database->engine();
  const auto lock = six.try_lock("job");
  REQUIRE(lock);
  CHECK_FALSE(four.try_lock("job"));
}
