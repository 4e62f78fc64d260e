// The promise that a line of those who wait in turn keeps its order whatever they want the name for:
// readers, writers and permits of any weight.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

LockOptions in_turn(Mode mode = Mode::exclusive, std::int64_t permits = 1, std::int64_t limit = 0) {
  LockOptions options;
  options.mode = mode;
  options.permits = permits;
  options.limit = limit;
  options.fairness = Fairness::fifo;
  options.reentrance = Reentrance::none;
  return options;
}

LockOptions reader() { return in_turn(Mode::shared); }
LockOptions writer() { return in_turn(); }
LockOptions permits(std::int64_t many) { return in_turn(Mode::permits, many, 3); }

// One in the line: is let in, stays until it is told to leave, and keeps the token under which it was in.
struct Queued {
  std::atomic<long long> token{0};
  std::atomic<bool> leave{false}, left{false};
  std::jthread thread{};

  bool inside() const { return token != 0 && !left; }
  void let_go() {
    leave = true;
    leave.notify_all();
    CHECK(eventually([&] { return left.load(); }));
  }
};

// Those who wait for "job" on several engines, in the order in which they came.
class Line {
 public:
  explicit Line(std::vector<Engine>& engines) : engines_(engines) {}
  ~Line() {
    for (auto& queued : queued_) {
      queued.leave = true;
      queued.leave.notify_all();
    }
  }

  void join(const LockOptions& wish) {
    auto& engine = engines_[queued_.size() % engines_.size()];
    const auto tickets = waiting();
    auto& queued = queued_.emplace_back();
    queued.thread = std::jthread([&engine, &queued, wish] {
      auto lock = engine.try_lock_for("job", 4min, wish);
      if (!lock) return;
      queued.token = number(lock->token());
      queued.leave.wait(false);
      lock->release();
      queued.left = true;
    });
    REQUIRE(eventually([&] { return queued.token != 0 || waiting() == tickets + 1; }));
  }

  std::size_t waiting() {
    std::size_t tickets = 0;
    for (const auto& one : engines_.front().waiters("job")) tickets += one.ticket != 0 ? 1 : 0;
    return tickets;
  }
  Queued& operator[](std::size_t i) { return queued_[i]; }
  std::size_t inside() const {
    return static_cast<std::size_t>(
        std::count_if(queued_.begin(), queued_.end(), [](const Queued& queued) { return queued.inside(); }));
  }
  // Whether each was let in after all who had come before it: tokens grow with every grant.
  bool kept_its_order() const {
    return std::is_sorted(queued_.begin(), queued_.end(),
                          [](const Queued& one, const Queued& other) { return one.token < other.token; });
  }

 private:
  std::vector<Engine>& engines_;
  std::deque<Queued> queued_;
};

}  // namespace

TEST_CASE(
    "a line of readers, writers and permits is let in in its order, those together who may be beside each other") {
  for (const std::size_t processes : {1U, 3U}) {
    INFO(processes << " engines");
    Database database;
    std::vector<Engine> engines;
    for (std::size_t i = 0; i < processes; ++i)
      engines.push_back(database.engine({.reentrance = Reentrance::none, .polling = {.longest = 50ms}}));
    auto stranger = database.engine({.reentrance = Reentrance::none});
    auto first = stranger.try_lock("job");
    REQUIRE(first);
    Line line(engines);
    const std::vector<std::vector<LockOptions>> groups{{reader(), reader(), reader()},
                                                       {writer()},
                                                       {reader()},
                                                       {permits(2), permits(1)},
                                                       {permits(3)},
                                                       {permits(1), permits(1)},
                                                       {permits(3)},
                                                       {writer()},
                                                       {writer()},
                                                       {reader(), reader()}};
    for (const auto& group : groups)
      for (const auto& wish : group) line.join(wish);
    std::size_t next = 0, waiting = line.waiting();
    first->release();
    for (const auto& group : groups) {
      const auto begin = next;
      next += group.size();
      const auto together = [&] {
        for (auto i = begin; i < next; ++i)
          if (!line[i].inside()) return false;
        return true;
      };
      REQUIRE(eventually(together));
      CHECK(line.inside() == group.size());
      waiting -= group.size();
      // Each leaves by itself: what comes free with it is not for somebody further back, nor for who does not queue.
      for (auto i = begin; i < next; ++i) {
        if (waiting > 0)
          for (const auto& wish : {reader(), writer(), permits(1)}) CHECK_FALSE(stranger.try_lock("job", wish));
        CHECK(line.inside() == next - i);
        line[i].let_go();
      }
    }
    CHECK(line.kept_its_order());
    CHECK(eventually([&] { return line.waiting() == 0; }));
  }
}

TEST_CASE("who wants several permits and is the first in line is not passed by who wants one, although that is free") {
  Database database;
  const auto table = database.table();
  Hand holder(*table, 1), heavy(*table, 2), light(*table, 3), last(*table, 4);
  for (auto* one : {&holder, &light, &last}) one->wanting(1, 3);
  heavy.wanting(3, 3);
  REQUIRE(holder.acquire());
  heavy.draw_ticket();
  light.draw_ticket();
  CHECK_FALSE(light.look_in_mode().free);
  CHECK_FALSE(light.acquire());  // two are free
  CHECK_FALSE(last.barge());
  CHECK_FALSE(heavy.acquire());
  CHECK(holder.release());
  CHECK_FALSE(light.acquire());  // all of them
  CHECK(heavy.look_in_mode().free);
  CHECK(heavy.acquire());
  last.draw_ticket();
  CHECK_FALSE(light.acquire());
  CHECK(heavy.release());
  CHECK_FALSE(last.acquire());
  CHECK(light.acquire());
  CHECK(last.acquire());
  CHECK(light.release());
  CHECK(last.release());
}

TEST_CASE("a reader does not pass a writer that is before it in line, nor a writer a reader, at any look of theirs") {
  Database database;
  const auto table = database.table();
  Hand inside(*table, 1), one(*table, 2), writer(*table, 3), behind(*table, 4), other_writer(*table, 5);
  for (auto* reader : {&inside, &one, &behind}) reader->reading();
  REQUIRE(inside.acquire());
  one.draw_ticket();
  writer.draw_ticket();
  behind.draw_ticket();
  other_writer.draw_ticket();
  CHECK_FALSE(behind.look_in_mode().free);
  CHECK_FALSE(behind.acquire());  // though it is readers who are inside
  CHECK(one.look_in_mode().free);
  CHECK(one.acquire());
  CHECK_FALSE(behind.acquire());
  CHECK_FALSE(writer.acquire());
  CHECK(inside.release());
  CHECK(one.release());
  CHECK_FALSE(behind.acquire());
  CHECK_FALSE(other_writer.acquire());
  CHECK(writer.acquire());
  CHECK(writer.release());
  CHECK_FALSE(other_writer.acquire());
  CHECK(behind.acquire());
  CHECK_FALSE(other_writer.acquire());
  CHECK(behind.release());
  CHECK(other_writer.acquire());
  CHECK(other_writer.release());
}

TEST_CASE("when the first in line gives up, those come in whom only its place kept out, each of them") {
  Database database;
  std::vector<Engine> engines;
  for (int i = 0; i < 2; ++i)
    engines.push_back(database.engine({.reentrance = Reentrance::none, .polling = {.longest = 50ms}}));
  auto other = database.engine({.reentrance = Reentrance::none});
  struct Case {
    LockOptions held, impatient, patient;
  };
  for (const auto& wishes : {Case{permits(1), permits(3), permits(1)}, Case{reader(), writer(), reader()}}) {
    auto held = other.try_lock("job", wishes.held);
    REQUIRE(held);
    std::stop_source stop;
    std::optional<Lock> granted;
    std::jthread impatient([&] { granted = other.lock(stop.get_token(), "job", wishes.impatient); });
    Line line(engines);
    REQUIRE(eventually([&] { return line.waiting() == 1; }));
    line.join(wishes.patient);
    line.join(wishes.patient);
    CHECK(line.inside() == 0);
    stop.request_stop();
    CHECK(eventually([&] { return line.inside() == 2; }));
    impatient.join();
    CHECK_FALSE(granted);
    CHECK(held->valid());
    line[0].let_go();
    line[1].let_go();
    CHECK(line.kept_its_order());
    held->release();
  }
}

TEST_CASE("whoever waits among writers that come again and again has its turn, and is passed by none of them") {
  constexpr int writers = 4, turns = 5, most_turns = 200;
  for (auto wish : {reader(), permits(1)}) {
    for (const auto fairness : {Fairness::fifo, Fairness::barging}) {
      INFO("mode: " << to_string(wish.mode) << ", " << to_string(fairness));
      wish.fairness = fairness;
      wish.label = "patient";
      Database database;
      std::vector<Engine> engines;
      for (int i = 0; i < 2; ++i)
        engines.push_back(database.engine({.reentrance = Reentrance::none, .polling = {.longest = 50ms}}));
      auto other = database.engine({.reentrance = Reentrance::none, .polling = {.longest = 50ms}});
      std::atomic<int> grants{0};
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < writers; ++i)
        threads.emplace_back([&, i](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            const auto lock = answered([&] { return engines[i % 2].try_lock_for("job", 4min, writer()); });
            if (lock) ++grants;
          }
        });
      CHECK(eventually([&] { return grants >= 2 * writers; }));
      int queued = 0;
      // Where it is let in again and again before anybody looks, it takes more of them.
      for (int turn = 0; turn < turns || (queued == 0 && turn < most_turns); ++turn) {
        auto patient = std::async(std::launch::async, [&] {
          const auto lock = answered([&] { return other.try_lock_for("job", 4min, wish); });
          CHECK(lock);
          return grants.load();
        });
        const auto in_line = [&] {
          const auto rows = other.waiters("job");
          return std::any_of(rows.begin(), rows.end(),
                             [](const Waiter& row) { return row.label == "patient" && row.ticket != 0; });
        };
        bool seen = false;
        const auto seen_or_over = [&] {
          seen = in_line();
          return seen || patient.wait_for(0s) == std::future_status::ready;
        };
        CHECK(eventually(seen_or_over, far_longer(), closely));
        const auto before = grants.load();
        const auto after = patient.get();
        if (!seen) continue;  // it was let in before anybody looked
        ++queued;
        // Each writer may have been in line before it, once, and one more may have been inside and not yet counted.
        CHECK(after - before <= writers + 1);
      }
      CHECK(queued > 0);
      for (auto& thread : threads) thread.request_stop();
    }
  }
}

TEST_CASE("a wait in line that is stopped, or whose time or engine ends, leaves nothing behind and keeps nobody out") {
  enum class End { stopped, late, without_engine };
  struct Case {
    std::string name;
    LockOptions held, impatient, patient;
  };
  for (const auto& wishes :
       {Case{"a reader", permits(1), reader(), permits(1)}, Case{"a permit", reader(), permits(1), reader()}}) {
    for (const auto end : {End::stopped, End::late, End::without_engine}) {
      INFO(wishes.name << ", how it ends: " << static_cast<int>(end));
      Database database;
      // A row that stays would be seen for much longer than anything here takes.
      const EngineOptions options{.reentrance = Reentrance::none, .polling = {.longest = 50ms}, .ticket = 10min};
      std::vector<Engine> engines;
      for (int i = 0; i < 2; ++i) engines.push_back(database.engine(options));
      auto other = database.engine(options);
      auto mortal = std::make_unique<Engine>(database.engine(options));
      auto held = other.try_lock("job", wishes.held);
      REQUIRE(held);
      const auto patience = end == End::late ? 1000ms * slowness() : std::chrono::milliseconds{4min};
      std::stop_source stop;
      const Stopwatch time;
      auto impatient = std::async(std::launch::async, [&, &engine = *mortal, token = stop.get_token()] {
        bool granted = false;
        const auto wait = [&] { return engine.try_lock_for("job", patience, wishes.impatient, token).has_value(); };
        const auto fault = thrown_by([&] { granted = end == End::late ? answered(wait) : wait(); }).fault;
        CHECK_FALSE(granted);
        if (end == End::late) CHECK(time.elapsed() >= patience);
        return fault;
      });
      Line line(engines);
      // Whose time is up may be gone before anybody has looked.
      REQUIRE(eventually([&] {
        return line.waiting() == 1 || (end == End::late && impatient.wait_for(0s) == std::future_status::ready);
      }));
      line.join(wishes.patient);
      line.join(wishes.patient);
      if (end != End::late) CHECK(line.inside() == 0);
      if (end == End::stopped) stop.request_stop();
      if (end == End::without_engine) mortal.reset();
      CHECK(eventually([&] { return line.inside() == 2; }));
      CHECK(impatient.get() == (end == End::without_engine ? std::optional(Fault::misuse) : std::nullopt));
      const auto rows = [&](const std::string& table) {
        return database.admin().number("SELECT count(*) FROM " + table);
      };
      CHECK(eventually([&] { return rows("resource_lock_waiter") == 0; }));
      CHECK(rows("resource_lock_holder") == 3);
      CHECK(held->valid());
      line[0].let_go();
      line[1].let_go();
      CHECK(held->release() == Released::freed);
      CHECK(rows("resource_lock_holder WHERE token > 0") == 0);
    }
  }
}
