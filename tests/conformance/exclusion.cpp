// The promise that a lock is held by one owner at a time.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Entry {
  long long token = 0, value = 0;
};

std::vector<Entry> journal(const std::string& folder) {
  std::vector<Entry> entries;
  std::ifstream lines(folder + "/journal");
  for (Entry entry; lines >> entry.token >> entry.value;) entries.push_back(entry);
  return entries;
}

}  // namespace

TEST_CASE("eight processes of two threads are never inside together, while some of them are killed") {
  Database database;
  const TemporaryFolder folder(true);
  constexpr std::size_t processes = 8, killed_inside = 3, killed_anywhere = 2, rounds = 25;
  // Who is too slow for it proves nothing, and says so by its exit.
  const auto lease = std::to_string(2000 * slowness());
  std::vector<Child> children;
  for (std::size_t i = 0; i < processes; ++i) {
    const auto dies_at = i < killed_inside ? std::to_string(3 + 2 * i) : "0";
    const bool ends = i >= killed_inside + killed_anywhere;  // and not before it is killed
    const auto its_rounds = std::to_string(ends ? rounds : 1'000'000);
    children.emplace_back(worker({"count", database.url(), "counter", folder.path(), "2", its_rounds, lease, dies_at}));
  }
  for (std::size_t i = killed_inside; i < killed_inside + killed_anywhere; ++i) {
    const auto seen = journal(folder.path()).size();
    REQUIRE(eventually([&] { return journal(folder.path()).size() > seen + 5; }));
    children[i].signal(SIGKILL);
  }
  for (std::size_t i = 0; i < processes; ++i)
    CHECK(children[i].wait() == (i < killed_inside + killed_anywhere ? killed_by(SIGKILL) : exited(0)));
  const auto entries = journal(folder.path());
  CHECK(entries.size() >= 2 * rounds * (processes - killed_inside - killed_anywhere));
  std::size_t gaps = 0;
  Entry last;
  for (const auto& entry : entries) {
    CHECK(entry.token > last.token);
    CHECK(entry.value > last.value);  // a value seen twice is a lost update: two were inside
    gaps += static_cast<std::size_t>(entry.value - last.value - 1);
    last = entry;
  }
  // Who was killed between raising the number and noting it has left a gap, also if nobody came after.
  long long raised = 0;
  std::array<char, sizeof raised> bytes{};
  std::ifstream(folder.path() + "/counter", std::ios::binary).read(bytes.data(), bytes.size());
  std::memcpy(&raised, bytes.data(), bytes.size());
  CHECK(raised >= last.value);
  gaps += static_cast<std::size_t>(raised - last.value);
  CHECK(gaps >= killed_inside);
  CHECK(gaps <= killed_inside + killed_anywhere);
  // What a killed process has left ends by its lease.
  auto engine = database.engine();
  CHECK(engine.try_lock_for("counter", 2min).has_value());
}

TEST_CASE("threads of one engine are never inside together") {
  Database database;
  auto engine = database.engine({.connections = 3});
  std::atomic<int> number{0};  // atomic in its steps, unguarded as a whole
  in_parallel(6, [&](int) {
    for (int round = 0; round < 10; ++round) {
      auto lock = engine.lock("counter");
      const int seen = number;
      std::this_thread::yield();
      number = seen + 1;
      CHECK(lock.release() == Released::freed);
    }
  });
  CHECK(number == 60);
}

TEST_CASE("of sixteen that race for a name nobody ever had exactly one wins") {
  Database database;
  auto first = database.engine({.connections = 4});
  auto second = database.engine({.connections = 4});
  for (int round = 0; round < 5; ++round) {
    const auto name = "new " + std::to_string(round);
    std::vector<std::optional<Lock>> locks(16);
    in_parallel(16, [&](int i) { locks[static_cast<std::size_t>(i)] = (i % 2 == 0 ? first : second).try_lock(name); });
    CHECK(std::count_if(locks.begin(), locks.end(), [](const auto& lock) { return lock.has_value(); }) == 1);
  }
}

TEST_CASE(
    "what is held is busy for everybody else, and without reentrance for the same thread of the same engine too") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  const auto lock = engine.try_lock("one");
  REQUIRE(lock);
  CHECK_FALSE(engine.try_lock("one", {.reentrance = Reentrance::none}));
  CHECK_FALSE(other.try_lock("one"));
}

TEST_CASE("locks of different names do not exclude each other") {
  Database database;
  auto engine = database.engine();
  const auto one = engine.try_lock("one");
  const auto two = engine.try_lock("two");
  CHECK(one);
  CHECK(two);
}
