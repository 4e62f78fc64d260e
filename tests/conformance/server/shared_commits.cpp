// The promise that releases and acquires which leave in one commit, where commits are slow, are answered as if each had
// gone alone: nothing that is wrong with an acquire undoes a release that was confirmed.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr int count = 10;  // of each kind

std::string held(int i) { return "held " + std::to_string(i); }
std::string freed(int i) { return "freed " + std::to_string(i); }

// A table on one connection whose answers take their time. Its names were freed before; those that are "held" are.
struct SlowTable {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  const std::unique_ptr<store::LockTable> table = open_table(database.server().url_at(proxy.address()), 1);
  const std::string version = database->admin().text("SELECT version()");
  std::vector<Token> tokens = std::vector<Token>(count);

  SlowTable() {
    for (int round = 1; round <= 3; ++round)
      for (int i = 0; i < count; ++i)
        for (const auto& name : {held(i), freed(i)})
          REQUIRE(release(name, 1000 * round + i, *acquire(name, 1000 * round + i).token));
    proxy.delay(3ms);
    acquire_held(10'000);
    release_held(10'000);
    acquire_held(20'000);
  }
  ~SlowTable() { database->admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''"); }

  bool is(std::string_view product) const { return version.find(product) != std::string::npos; }
  // Where it can, the other ways through this are as good: they end in the same answers.
  bool shares() const {
    return (is("PostgreSQL") || is("MariaDB")) && database_peers == 0 && std::getenv("DLOCK_TEST_COMBINE") == nullptr;
  }

  store::Granted acquire(const std::string& text, int number, std::string_view metadata = "meta") {
    const Name name(text);
    const auto owner = identity(number);
    return table->acquire({name, owner, "node", "label", owner, 1h, {}, metadata}, soon());
  }
  bool release(const std::string& name, int number, Token token) {
    return table->release({name, identity(number), token}, soon());
  }
  // What is known is told as known: a lease that is lost would not be called so where there is doubt.
  void release_lost(int i, int number, Token token) {
    for (const auto until = soon(); !until.passed();) {
      try {
        CHECK_FALSE(release(held(i), number, token));
        return;
      } catch (const Failure& failure) { CHECK_FALSE(failure.may_have_run()); }
    }
    FAIL_CHECK("no answer");
  }
  bool release_held_one(int i) {
    return patiently([&]() -> bool { return release(held(i), 20'000 + i, tokens[static_cast<std::size_t>(i)]); });
  }

  // Runs each on a thread of its own, so that all of them wait for the connection at the same time, just after others
  // have done so. In how many statements of several they went.
  std::uint64_t together(
      const std::vector<std::function<void()>>& calls, const std::function<void()>& prepare = [] {}) {
    std::vector<std::function<void()>> crowd;
    for (int i = 0; i < count; ++i)
      crowd.emplace_back([this, i] { CHECK(acquire("crowd " + std::to_string(i), 60'000 + i).token); });
    wait_together(crowd);
    database->admin().run("UPDATE resource_lock SET owner = NULL WHERE name LIKE 'crowd%' OR name = 'before'");
    prepare();
    return wait_together(calls);
  }

 private:
  std::uint64_t wait_together(const std::vector<std::function<void()>>& calls) {
    const auto batches = table->traffic().batches;
    proxy.hold_next_request();
    std::jthread before([&] {
      try {
        acquire("before", 1);
      } catch (const Failure&) {  // it has the connection until the others are there, no more
      }
    });
    REQUIRE(eventually([&] { return proxy.holds(); }));
    {
      std::vector<std::jthread> threads;
      for (const auto& call : calls) threads.emplace_back(call);
      CHECK(eventually([&] { return table->traffic().in_flight == calls.size() + 1; }));
      proxy.let_held_go();
    }
    before.join();
    return table->traffic().batches - batches;
  }
  template <class Use>
  void of_held(int series, Use use) {
    std::vector<Name> names;
    std::vector<std::string> owners;
    for (int i = 0; i < count; ++i) {
      names.emplace_back(held(i));
      owners.push_back(identity(series + i));
    }
    use(names, owners);
  }
  void acquire_held(int series) {
    of_held(series, [&](const std::vector<Name>& names, const std::vector<std::string>& owners) {
      std::vector<store::AcquireRequest> asks;
      for (std::size_t i = 0; i < count; ++i)
        asks.push_back({names[i], owners[i], "node", "label", owners[i], 1h, {}, "meta"});
      const auto all = table->acquire_together(asks, soon());
      for (std::size_t i = 0; i < count; ++i) tokens[i] = *(all[i] ? *all[i] : table->acquire(asks[i], soon())).token;
    });
  }
  void release_held(int series) {
    of_held(series, [&](const std::vector<Name>& names, const std::vector<std::string>& owners) {
      std::vector<store::LeaseKey> keys;
      for (std::size_t i = 0; i < count; ++i) keys.push_back({names[i].text(), owners[i], tokens[i]});
      const auto all = table->release_together(keys, soon());
      for (std::size_t i = 0; i < count; ++i) REQUIRE((all[i] ? all[i]->was_there : table->release(keys[i], soon())));
    });
  }

  const std::size_t database_peers = database.server().peers().size();
};

// What the threads of a test have been told.
struct Told {
  std::vector<std::optional<Token>> granted = std::vector<std::optional<Token>>(count);
  std::vector<std::function<void()>> calls{};

  explicit Told(SlowTable& slow) {
    for (int i = 0; i < count; ++i) {
      calls.emplace_back([&slow, i] { CHECK(slow.release_held_one(i)); });
      calls.emplace_back([this, &slow, i] {
        granted[static_cast<std::size_t>(i)] = patiently([&] {
                                                 const auto answer = slow.acquire(freed(i), 30'000 + i);
                                                 if (answer.row_locked)
                                                   throw Failure(Cause::locked, "the row is locked");
                                                 return answer;
                                               }).token;
      });
    }
  }
  void check(SlowTable& slow, int but = -1) const {
    for (int i = 0; i < count; ++i) {
      CHECK(slow.database->admin().owner(held(i)).empty());
      if (i == but) continue;
      REQUIRE(granted[static_cast<std::size_t>(i)]);
      CHECK(slow.database->admin().token(freed(i)) == *granted[static_cast<std::size_t>(i)]);
      CHECK(slow.database->admin().owner(freed(i)) == identity(30'000 + i));
    }
  }
};

}  // namespace

TEST_CASE("where commits are slow, releases and acquires that wait leave in one commit, each with its own answer") {
  SlowTable slow;
  Told told(slow);
  const auto batches = slow.together(told.calls);
  told.check(slow);
  if (slow.shares()) CHECK(batches == 1);
}

TEST_CASE("a row that is locked elsewhere among the acquires undoes no release, and delays none") {
  SlowTable slow;
  slow.database->admin().block(freed(3));
  Told told(slow);
  std::atomic<int> released{0};
  for (int i = 0; i < count; ++i)
    told.calls[static_cast<std::size_t>(2 * i)] = [&, i] {
      CHECK(slow.release_held_one(i));
      if (++released == count) slow.database->admin().unblock();
    };
  const auto batches = slow.together(told.calls);
  told.check(slow);
  if (slow.shares() && slow.is("PostgreSQL")) CHECK(batches == 1);
}

TEST_CASE("an acquire that is refused by the database fails alone, and undoes no release beside it") {
  SlowTable slow;
  Told told(slow);
  const std::string too_long(5000, 'x');
  told.calls[2 * 3 + 1] = [&] {
    try {
      slow.acquire(freed(3), 40'000, too_long);
      FAIL_CHECK("it is too long");
    } catch (const Failure& failure) {
      CHECK(failure.cause() == Cause::rejected);
      CHECK_FALSE(failure.may_have_run());
    }
  };
  slow.together(told.calls);
  told.check(slow, 3);
  CHECK(slow.database->admin().owner(freed(3)).empty());
  for (int i = 0; i < count; ++i) {
    const auto& token = told.granted[static_cast<std::size_t>(i)];
    if (token) CHECK(slow.release(freed(i), 30'000 + i, *token));  // on the same connection: nothing is left open there
  }
  const auto left = "SELECT COUNT(*) FROM resource_lock WHERE owner IS NOT NULL AND name <> 'before'";
  CHECK(slow.database->admin().number(left) == 0);
}

TEST_CASE("a release of what is not there any more, and a repeated acquire, are told what they are told alone") {
  SlowTable slow;
  Told told(slow);
  told.calls[2 * 2] = [&] { slow.release_lost(2, 50'000, slow.tokens[2]); };
  slow.database->admin().run("UPDATE resource_lock SET owner = NULL, token = token + 1 WHERE name = '" + held(5) + "'");
  told.calls[2 * 5] = [&] { slow.release_lost(5, 20'005, slow.tokens[5]); };
  // Adopted by another one, who has given it back.
  slow.database->admin().run("UPDATE resource_lock SET owner = NULL, actor = '" + identity(55'000) +
                             "' WHERE name = '" + held(6) + "'");
  told.calls[2 * 6] = [&] { slow.release_lost(6, 20'006, slow.tokens[6]); };
  const auto before = slow.acquire(freed(4), 30'004).token;
  REQUIRE(before);
  slow.database->admin().run("UPDATE resource_lock SET expires_at = expires_at - 1800000000 WHERE name = '" + freed(4) +
                             "'");
  const auto ends = slow.database->admin().expires_at(freed(4));
  slow.together(told.calls);
  CHECK(slow.database->admin().owner(held(2)) == identity(20'002));
  CHECK(slow.release_held_one(2));
  told.check(slow);
  CHECK(told.granted[4] == before);
  CHECK(slow.database->admin().expires_at(freed(4)) > ends + 10min);
}

TEST_CASE("where the answer to both is lost, each is in doubt, and gets its answer when it is asked again") {
  // The connection that all of them wait for is a new one: which of its answers is lost is what the rounds differ in.
  bool lost_that_of_both = false;
  for (std::size_t spared = 0; spared < 20 && !lost_that_of_both; ++spared) {
    CAPTURE(spared);
    SlowTable slow;
    std::atomic<int> in_doubt{0};
    const auto asked_again = [&](const std::function<bool()>& call) {
      return [&, call] {
        for (const auto until = soon(); !until.passed();) {
          try {
            if (!call()) FAIL_CHECK("it was told that it had nothing, or got nothing");
            return;
          } catch (const Failure& failure) {
            if (!failure.may_have_run()) continue;
            ++in_doubt;
            return;
          }
        }
      };
    };
    std::vector<std::function<void()>> calls;
    for (int i = 0; i < count; ++i) {
      calls.push_back(asked_again([&, i]() -> bool { return slow.release_held_one(i); }));
      calls.push_back(asked_again([&, i]() -> bool { return slow.acquire(freed(i), 30'000 + i).token.has_value(); }));
    }
    slow.together(calls, [&] { slow.proxy.lose_next_answer(1 + spared); });  // the one that is held is none of them
    REQUIRE(slow.proxy.lost_it());
    // Who finds that the connection has to be opened goes alone.
    lost_that_of_both = in_doubt == 2 * count - 1;
    for (int i = 0; i < count; ++i) {
      static_cast<void>(patiently([&]() -> bool { return slow.release_held_one(i); }));
      CHECK(slow.database->admin().owner(held(i)).empty());
      const auto token = slow.database->admin().token(freed(i));
      CHECK(slow.acquire(freed(i), 30'000 + i).token == token);
      CHECK(slow.database->admin().owner(freed(i)) == identity(30'000 + i));
    }
    if (!slow.shares()) return;
  }
  CHECK(lost_that_of_both);
}
