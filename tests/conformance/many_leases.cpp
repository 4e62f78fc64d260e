// The promise that thousands of held leases cost one statement a round, and next to nothing in between.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr int count = sanitized ? 1000 : 10000;

std::chrono::microseconds processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds{used.ru_utime.tv_sec + used.ru_stime.tv_sec} +
         std::chrono::microseconds{used.ru_utime.tv_usec + used.ru_stime.tv_usec};
}

// Takes them all at once as far as the connections allow.
std::vector<Lock> take(Engine& engine, const LockOptions& options) {
  std::vector<Lock> all;
  std::mutex mutex;
  in_parallel(4, [&](int part) {
    for (int i = part; i < count; i += 4) {
      auto lock = engine.try_lock("many/" + std::to_string(i), options);
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
  auto all = take(engine, {.lease = 1h});
  const auto table = database.table();
  std::vector<store::LeaseKey> claims;
  for (const auto& lock : all) claims.push_back({lock.name(), lock.owner(), lock.token(), 1h});
  table->renew(claims, Deadline::max());
  const Stopwatch time;
  const auto outcomes = table->renew(claims, Deadline::max());
  const auto took = time.elapsed();
  CHECK(std::count(outcomes.begin(), outcomes.end(), store::Renewed::yes) == count);
  MESSAGE(count << " leases renewed in " << took.count() << " us");
  CHECK(took < 5s * slowness());
  leave(database, all);
}

TEST_CASE("an engine that holds thousands of leases keeps them all, and sleeps in between") {
  Database database;
  EventLog news;
  auto engine = database.engine({.connections = 4, .observer = news.observer()});
  const auto interval = 5s;
  auto all = take(engine, {.lease = 1min * slowness(), .renew_every = interval});
  auto& admin = database.admin();
  const auto first_end = [&] {  // of the one that was renewed longest ago
    return Duration{admin.number("SELECT min(expires_at) FROM resource_lock WHERE owner IS NOT NULL")};
  };
  const auto begun = first_end();
  const Stopwatch watch;
  const auto before = processor_time();
  // A round at least for each of them.
  CHECK(eventually([&] {
    std::this_thread::sleep_for(200ms);
    return watch.elapsed() > 2 * interval && first_end() > begun;
  }));
  const auto used = processor_time() - before;
  MESSAGE(count << " leases held: " << used.count() << " us of processor time in " << watch.elapsed().count() << " us");
  for (const auto& lock : all) CHECK(lock.valid());
  CHECK_FALSE(news.has(Event::Kind::lost));
  CHECK_FALSE(news.has(Event::Kind::trust_low));
  CHECK(used < watch.elapsed() / 4);
  leave(database, all);
}
