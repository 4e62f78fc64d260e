// Promises of what is sent as several statements in one packet, on a cluster whose servers all write the same rows:
// what arrives from another server may undo a transaction in the middle of a packet, and that is never called done.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// One table for each server of the cluster.
std::vector<std::unique_ptr<store::LockTable>> open_everywhere(ServerDatabase& database, unsigned connections) {
  std::vector<std::unique_ptr<store::LockTable>> tables;
  tables.push_back(open_table(database->url(), connections));
  for (const auto& peer : database.server().peers())
    tables.push_back(open_table(database.server().url_at(peer), connections));
  return tables;
}

// Counts its end, however it comes.
class Counted {
 public:
  explicit Counted(std::atomic<int>& ended) : ended_(ended) {}
  ~Counted() { ++ended_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& ended_;
};

}  // namespace

TEST_CASE("each ticket is drawn once, and whoever was told of one has it, although servers undo each other's draws") {
  constexpr int threads = 6, rounds = 60;
  ServerDatabase database;
  const auto tables = open_everywhere(database, threads);
  REQUIRE(tables.size() > 1);
  std::vector<std::vector<std::int64_t>> drawn(threads);
  in_parallel(threads, [&](int thread) {
    auto& table = *tables[static_cast<std::size_t>(thread) % tables.size()];
    for (int round = 0; round < rounds; ++round)
      drawn[static_cast<std::size_t>(thread)].push_back(Hand(table, thread * rounds + round).draw_ticket());
  });
  std::set<std::int64_t> different;
  for (const auto& tickets : drawn) different.insert(tickets.begin(), tickets.end());
  CHECK(different.size() == threads * rounds);
  for (int thread = 0; thread < threads; ++thread)
    for (int round = 0; round < rounds; ++round)
      CHECK(eventually([&] {
        return database->admin().number("SELECT ticket FROM resource_lock_waiter WHERE owner = '" +
                                        identity(thread * rounds + round) + "'") ==
               drawn[static_cast<std::size_t>(thread)][static_cast<std::size_t>(round)];
      }));
  CHECK(eventually([&] {
    return database->admin().number("SELECT next_ticket FROM resource_lock WHERE name = 'job'") >= *different.rbegin();
  }));
}

TEST_CASE("what was released together with others is free, although other servers write the same rows meanwhile") {
  constexpr int threads = 6, rounds = 60;
  ServerDatabase database;
  const auto tables = open_everywhere(database, 1);
  const auto name_of = [](int thread) { return "job " + std::to_string(thread); };
  std::atomic<int> done{0};
  in_parallel(threads + static_cast<int>(tables.size()) - 1, [&](int thread) {
    if (thread >= threads) {
      auto& room = tables[static_cast<std::size_t>(thread - threads + 1)]->waiting();
      for (int i = 0; done < threads; ++i)
        patiently([&] {
          const auto name = name_of(i % threads);
          room.unwant(name, soon());
          room.want(name, 10s, soon());
          return true;
        });
      return;
    }
    const Counted last(done);
    bool all_free = true;
    for (int round = 0; round < rounds && all_free; ++round) {
      Hand hand(*tables.front(), 1000 + thread * rounds + round, name_of(thread));
      all_free = hand.barge();
      CHECK(all_free);
      if (all_free) CHECK(hand.release());
    }
  });
  CHECK(database->admin().held() == 0);
}

TEST_CASE("a name is free when all who shared it have gone, though they went at one moment through different servers") {
  constexpr std::size_t rounds = 60;
  ServerDatabase database;
  REQUIRE_FALSE(database.server().peers().empty());
  auto here = database->engine({.timeouts = {.request = 10s}});
  Engine there(database.server().url_at(database.server().peers().front()), {.timeouts = {.request = 10s}});
  LockOptions reading;
  reading.mode = Mode::shared;
  reading.lease = 10min;
  reading.renew = false;
  std::vector<std::optional<Lock>> first(rounds), second(rounds);
  for (std::size_t round = 0; round < rounds; ++round)
    first[round] = here.try_lock("job " + std::to_string(round), reading);
  database.server().await_peers();
  for (std::size_t round = 0; round < rounds; ++round)
    second[round] = there.try_lock_for("job " + std::to_string(round), 10s, reading);
  database.server().await_peers();
  for (std::size_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    REQUIRE((first[round] && second[round]));
    in_parallel(2, [&](int reader) { (reader == 0 ? first : second)[round]->release(); });
  }
  CHECK(eventually([&] { return database->admin().held() == 0; }));
}
