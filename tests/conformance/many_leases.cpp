// This file knows the promise that thousands of held leases cost one statement a round, and next to nothing in between.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/news.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr int count = slowness == 1 ? 10000 : 1000;

std::chrono::microseconds processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds{used.ru_utime.tv_sec + used.ru_stime.tv_sec} +
         std::chrono::microseconds{used.ru_utime.tv_usec + used.ru_stime.tv_usec};
}

// Takes them all at once as far as the connections allow.
std::vector<Lock> take(Engine& engine, Duration lease) {
  std::vector<Lock> all;
  std::mutex mutex;
  in_parallel(4, [&](int part) {
    for (int i = part; i < count; i += 4) {
      auto lock = engine.try_lock("many/" + std::to_string(i), {.lease = lease});
      REQUIRE(lock);
      const std::lock_guard guard(mutex);
      all.push_back(std::move(*lock));
    }
  });
  return all;
}

// Leaves without a statement for each.
void leave(Database& database, std::vector<Lock>& all) {
  for (auto& lock : all) lock.detach();
  database.admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''");
}

}  // namespace

TEST_CASE("all leases are renewed by one statement, in a small part of any lease") {
  Database database;
  auto engine = database.engine({.connections = 4});
  auto all = take(engine, 1h);
  const auto table = database.table();
  std::vector<store::Claim> claims;
  for (const auto& lock : all) claims.push_back({lock.name(), lock.owner(), lock.token()});
  table->renew(claims, Deadline::max());
  const Stopwatch time;
  const auto outcomes = table->renew(claims, Deadline::max());
  const auto took = time.elapsed();
  CHECK(std::count(outcomes.begin(), outcomes.end(), store::Renewed::yes) == count);
  MESSAGE(count << " leases renewed in " << took.count() << " us");
  CHECK(took < 5s);
  leave(database, all);
}

TEST_CASE("an engine that holds thousands of leases keeps them all, and sleeps in between") {
  Database database;
  News news;
  auto engine = database.engine({.connections = 4, .observer = news.observer()});
  auto all = take(engine, 20s);
  const auto trusted = [&] {  // of the one that is trusted least
    Duration least = Duration::max();
    for (const auto& lock : all) least = std::min(least, lock.remaining());
    return least;
  };
  const Stopwatch watch;
  const auto before = processor_time();
  // Long enough for a round at least: 46 % of the lease.
  CHECK(eventually([&] {
    std::this_thread::sleep_for(200ms);
    return watch.elapsed() > 10s;
  }));
  const auto used = processor_time() - before;
  MESSAGE(count << " leases held: " << used.count() << " us of processor time in " << watch.elapsed().count() << " us");
  CHECK(trusted() > 5s);
  CHECK_FALSE(news.has(Event::Kind::lost));
  CHECK_FALSE(news.has(Event::Kind::trust_low));
  CHECK(used < watch.elapsed() / 4);
  leave(database, all);
}
