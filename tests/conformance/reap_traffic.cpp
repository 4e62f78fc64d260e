// The promise that the reaper is in nobody's way: a hundred thousand rows go under live traffic.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/rows.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr int old_rows = sanitized ? 10'000 : 100'000;
constexpr int threads = 3;

struct Latencies {
  std::vector<Duration> all;
  Duration at(double part) {
    std::sort(all.begin(), all.end());
    return all.empty() ? Duration{} : all[static_cast<std::size_t>(static_cast<double>(all.size() - 1) * part)];
  }
  void print(const char* when, Duration span) {
    std::cout << when << ": " << all.size() << " pairs in " << span.count() / 1000 << " ms; an acquire took "
              << at(0.5).count() << " us (median), " << at(0.99).count() << " us (99 %), " << at(1).count()
              << " us (longest)" << std::endl;
  }
};

// Acquires and releases names among the old ones, until `over`.
template <class Over>
Latencies traffic(Engine& engine, Over over) {
  Latencies together;
  std::mutex mutex;
  in_parallel(threads, [&](int thread) {
    Latencies mine;
    for (int i = 0; !over(); ++i) {
      const auto name = row_name("old ", (i * 997 + thread) % old_rows) + " live";
      const Stopwatch time;
      auto lock = engine.try_lock(name);
      mine.all.push_back(time.elapsed());
      if (!lock) throw std::runtime_error(name + " was busy");
      if (lock->release() != Released::freed) throw std::runtime_error(name + " was lost");
      std::this_thread::sleep_for(2ms);  // traffic, not a contest for the server's last transaction
    }
    const std::lock_guard guard(mutex);
    together.all.insert(together.all.end(), mine.all.begin(), mine.all.end());
  });
  return together;
}

}  // namespace

TEST_CASE("a hundred thousand rows are removed, and who locks and holds meanwhile does not wait for it") {
  Database database;
  add_old_rows(database.admin(), "old ", old_rows);
  auto engine = database.engine({.connections = threads + 1});
  std::vector<Lock> held;
  for (int i = 0; i < 20; ++i)
    held.push_back(
        engine.lock(row_name("old ", i * (old_rows / 20)), {.lease = 5s * slowness(), .renew_every = 100ms}));
  const Stopwatch quiet;
  auto before = traffic(engine, [&] { return quiet.elapsed() > 1s; });
  before.print("without a reaper", quiet.elapsed());

  auto reaper = database.engine({.reaper = {.every = 100ms, .retention = 1h, .grace = 50ms}});
  const Stopwatch busy;
  std::atomic<bool> gone{false};
  std::atomic<bool> over{false};
  std::jthread watch([&] {
    // They go in the order of their names.
    gone = eventually([&] { return !database.admin().exists(row_name("old ", old_rows - 1)); }, 180s);
    over = true;
  });
  auto during = traffic(engine, [&] { return over.load(); });
  watch.join();
  during.print("while the rows go", busy.elapsed());
  CHECK(gone);
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock WHERE expires_at = 1000") == 0);
  // Waiting for a batch, a scan or the whole would show here.
  CHECK(during.at(0.5) < 100ms * slowness());
  CHECK(during.at(0.99) < 500ms * slowness());
  for (auto& lock : held) {
    CHECK(lock.valid());
    CHECK(lock.release() == Released::freed);
  }
  CHECK(number(database.admin().floor()) >= old_rows);
}
