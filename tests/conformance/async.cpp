// The promise that what is asked for without a thread is answered as the calls that wait are: once, in time, on the
// program's executor; and that nothing is left held, whoever stops or goes first.
#include "support/allocations.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/loop.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// An engine whose handlers run on the test's own thread.
struct Looped {
  Database database{};
  Loop loop{};
  Engine engine;
  explicit Looped(EngineOptions options = {}) : engine(open(std::move(options))) {}

  Engine open(EngineOptions options) {
    options.executor = loop.executor();
    return database.engine(options);
  }
};

// Where an answer is put down.
class Answer {
 public:
  Engine::LockHandler handler() {
    return [this](Result<Lock> result) {
      ++count_;
      on_ = std::this_thread::get_id();
      result_.emplace(std::move(result));
    };
  }
  bool there() const noexcept { return count_ > 0; }
  int count() const noexcept { return count_; }
  std::thread::id on() const noexcept { return on_; }
  Result<Lock>& operator*() { return *result_; }
  Result<Lock>* operator->() { return &*result_; }
  void drop() { result_.reset(); }

 private:
  std::atomic<int> count_{0};
  std::thread::id on_{};
  std::optional<Result<Lock>> result_{};
};

std::size_t threads() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

std::string name_of(int number) { return "job/" + std::to_string(number); }

}  // namespace

TEST_CASE("an asynchronous try is granted, or told that the lock is busy, on the executor and never inside the call") {
  Looped here;
  Answer first, second;
  here.engine.async_try_lock("job", {.label = "nightly"}, first.handler());
  CHECK(eventually([&] { return here.loop.waiting() > 0; }));
  CHECK_FALSE(first.there());
  REQUIRE(here.loop.run_until([&] { return first.there(); }));
  REQUIRE(first->has_value());
  CHECK((**first).valid());
  CHECK(here.engine.inspect("job")->label == "nightly");
  CHECK(first.on() == std::this_thread::get_id());
  here.engine.async_try_lock("job", {}, second.handler());
  REQUIRE(here.loop.run_until([&] { return second.there(); }));
  CHECK(second->refused() == Refused::busy);
  CHECK(second->error() == nullptr);
  CHECK_FALSE(std::move(*second).get());
  CHECK(first.count() == 1);
}

TEST_CASE("a Result says what it has: a value, a refusal or an Error") {
  Result<int> value(7), refused(Refused::stopped), broken(Error(Fault::unavailable, "away"));
  CHECK(value);
  CHECK(*value == 7);
  CHECK(std::move(value).get() == 7);
  CHECK_FALSE(refused);
  CHECK(refused.refused() == Refused::stopped);
  CHECK_FALSE(std::move(refused).get());
  CHECK(thrown_by([&] { static_cast<void>(Result<int>(Refused::busy).value()); }).fault == Fault::misuse);
  REQUIRE(broken.error() != nullptr);
  CHECK(broken.error()->fault() == Fault::unavailable);
  CHECK(thrown_by([&] { static_cast<void>(std::move(broken).get()); }).fault == Fault::unavailable);
}

TEST_CASE("what is wrong in the call itself is thrown at once, and no handler is called") {
  Looped here;
  Answer answer;
  const auto misused = [&](auto call) { return thrown_by([&] { call(); }).fault == Fault::misuse; };
  CHECK(misused([&] { here.engine.async_try_lock("", {}, answer.handler()); }));
  CHECK(misused([&] { here.engine.async_lock("job", {.lease = -1s}, answer.handler()); }));
  CHECK(misused([&] { here.engine.async_try_lock_for("job", -1s, {}, answer.handler()); }));
  CHECK(misused([&] { here.engine.async_lock("job", {}, nullptr); }));
  CHECK(misused([&] { here.engine.async_release(Lock()); }));
  CHECK(here.loop.run() == 0);
  CHECK_FALSE(answer.there());
}

TEST_CASE("an asynchronous wait ends with the lock, or when time is up, and not before") {
  Looped here;
  auto other = here.database.engine();
  auto held = other.lock("job");
  Answer late, granted;
  const auto patience = 1s * slowness();  // who has less is told that the database was too slow, on a busy machine
  const Stopwatch watch;
  here.engine.async_try_lock_for("job", patience, {}, late.handler());
  here.engine.async_lock("job", {}, granted.handler());
  REQUIRE(here.loop.run_until([&] { return late.there(); }));
  CHECK(watch.elapsed() >= patience);
  CHECK(late->refused() == Refused::timed_out);
  CHECK_FALSE(granted.there());
  held.release();
  REQUIRE(here.loop.run_until([&] { return granted.there(); }));
  CHECK(granted->has_value());
  CHECK(granted.count() == 1);
  CHECK(late.count() == 1);
}

TEST_CASE("an asynchronous wait of no length is one attempt, and busy, also behind others that wait") {
  Looped here;
  const auto held = here.engine.lock("job", {.reentrance = Reentrance::none});
  std::stop_source stop;
  Answer waits;
  // Where the database was too slow to tell, once more.
  const auto refused = [&] {
    return answered([&] {
      Answer answer;
      here.engine.async_try_lock_for("job", 0s, {}, answer.handler());
      REQUIRE(here.loop.run_until([&] { return answer.there(); }));
      if (answer->error() != nullptr) throw Error(*answer->error());
      return answer->refused();
    });
  };
  CHECK(refused() == Refused::busy);
  here.engine.async_lock("job", {}, stop.get_token(), waits.handler());
  CHECK(refused() == Refused::busy);
  CHECK(here.engine.stats().busy == 2);
  stop.request_stop();
  CHECK(here.loop.run_until([&] { return waits.there(); }));
}

TEST_CASE("time is up for each that waits behind others, at its own time") {
  const auto step = 100ms * slowness();  // who has less is told that the database was too slow, on a busy machine
  // Whether the database could be asked in time by all of them.
  CHECK(eventually([&] {
    Looped here;
    const auto held = here.engine.lock("job", {.reentrance = Reentrance::none});
    std::vector<std::unique_ptr<Answer>> answers;
    const Stopwatch watch;
    std::vector<std::chrono::microseconds> ended(20);
    for (int i = 0; i < 20; ++i) {
      answers.push_back(std::make_unique<Answer>());
      here.engine.async_try_lock_for("job", step * (20 - i), {},
                                     [&, i, tell = answers.back()->handler()](Result<Lock> result) {
                                       ended[static_cast<std::size_t>(i)] = watch.elapsed();
                                       tell(std::move(result));
                                     });
    }
    CHECK(here.loop.run_until(
        [&] { return std::all_of(answers.begin(), answers.end(), [](const auto& one) { return one->there(); }); }));
    int refused = 0;
    for (int i = 0; i < 20; ++i) {
      CAPTURE(i);
      auto& answer = *answers[static_cast<std::size_t>(i)];
      if (answer->error() == nullptr) CHECK(answer->refused() == Refused::timed_out);
      refused += answer->error() == nullptr ? 1 : 0;
      CHECK(ended[static_cast<std::size_t>(i)] >= step * (20 - i));
    }
    CHECK(eventually([&] { return here.engine.stats().waiting.empty(); }));
    CHECK(here.engine.stats().timed_out == static_cast<std::uint64_t>(refused));
    return refused == 20;
  }));
}

TEST_CASE("many that want one name get it one after another, each once, and nobody beside them") {
  Looped here;
  auto other = here.database.engine();
  int inside = 0, served = 0, most = 0;
  std::set<std::int64_t> tokens;
  const int all = 100;
  for (int i = 0; i < all; ++i)
    here.engine.async_lock("job", {}, [&](Result<Lock> result) {
      REQUIRE(result);
      most = std::max(most, ++inside);
      tokens.insert(number(result->token()));
      here.loop.executor()([&, lock = std::make_shared<Lock>(std::move(*result))] {  // others come in between
        --inside;
        here.engine.async_release(std::move(*lock), [&](Released released) {
          CHECK(released == Released::freed);
          ++served;
        });
      });
    });
  std::atomic<bool> over{false};
  std::atomic<int> elsewhere{0};
  std::thread rival([&] {
    while (!over)
      if (auto lock = answered([&] { return other.try_lock_for("job", 50ms); })) ++elsewhere;
  });
  CHECK(here.loop.run_until([&] { return served == all; }));
  over = true;
  rival.join();
  CHECK(most == 1);
  CHECK(tokens.size() == static_cast<std::size_t>(all));
}

TEST_CASE("many names are asked for and released in few statements") {
  Looped here({.reentrance = Reentrance::none, .combine = 50});
  const int all = 200;
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<std::unique_ptr<Answer>> answers;
    for (int i = 0; i < all; ++i) {
      answers.push_back(std::make_unique<Answer>());
      here.engine.async_try_lock(name_of(i), {}, answers.back()->handler());
    }
    REQUIRE(here.loop.run_until(
        [&] { return std::all_of(answers.begin(), answers.end(), [](const auto& one) { return one->there(); }); }));
    int released = 0;
    for (auto& one : answers) {
      REQUIRE((*one)->has_value());
      here.engine.async_release(std::move(***one), [&](Released end) { released += end == Released::freed ? 1 : 0; });
    }
    REQUIRE(here.loop.run_until([&] { return released == all; }));
  }
  const auto batches = here.engine.stats().batches;
  CHECK(batches.sent > 0);
  CHECK(batches.requests > 3 * all);  // most of them, there and back
  CHECK(here.engine.stats().leases == 0);
}

TEST_CASE("a stop ends an asynchronous wait wherever it is, and the others go on") {
  Looped here;
  auto held = here.engine.lock("job", {.reentrance = Reentrance::none});
  std::stop_source first, behind, before;
  before.request_stop();
  Answer one, two, three, four;
  here.engine.async_lock("job", {}, before.get_token(), one.handler());
  REQUIRE(here.loop.run_until([&] { return one.there(); }));
  CHECK(one->refused() == Refused::stopped);
  here.engine.async_lock("job", {}, first.get_token(), two.handler());
  here.engine.async_lock("job", {}, behind.get_token(), three.handler());
  here.engine.async_lock("job", {}, four.handler());
  CHECK(eventually([&] { return here.engine.stats().waiting["job"] == 3; }));
  behind.request_stop();
  REQUIRE(here.loop.run_until([&] { return three.there(); }));
  CHECK(three->refused() == Refused::stopped);
  first.request_stop();
  REQUIRE(here.loop.run_until([&] { return two.there(); }));
  CHECK(two->refused() == Refused::stopped);
  CHECK_FALSE(four.there());
  held.release();
  REQUIRE(here.loop.run_until([&] { return four.there(); }));
  CHECK(four->has_value());
}

TEST_CASE("ten thousand that wait for one name cost three threads and two megabytes") {
  Looped here;
  auto held = here.engine.lock("job", {.reentrance = Reentrance::none});
  std::size_t answered = 0;
  Answer warm;
  here.engine.async_try_lock("warm", {}, warm.handler());
  const auto before = threads() - 3;
  REQUIRE(here.loop.run_until([&] { return warm.there(); }));
  warm.drop();
  const auto bytes = bytes_allocated();
  constexpr std::size_t all = 10'000;
  for (std::size_t i = 0; i < all; ++i) here.engine.async_lock("job", {}, [&](Result<Lock>) { ++answered; });
  CHECK(eventually([&] { return here.engine.stats().waiting["job"] == all; }));
  CHECK(threads() <= before + 4);  // and one that listens to the database
  if (allocations_are_counted()) {
    const auto each = (bytes_allocated() - bytes) / all;
    INFO("bytes each: ", each);
    CHECK(bytes_allocated() - bytes <= 2'000'000);
  }
  held.release();
  CHECK(here.loop.run_until([&] { return answered >= 100; }));  // each Result goes, and its Lock with it
  here.engine = here.open({});                                  // which ends the others' waits
  CHECK(here.loop.run_until([&] { return answered == all; }));
}

TEST_CASE("what is taken asynchronously is nobody's but a job's") {
  Looped here;
  Answer first, second, third, fourth;
  here.engine.async_try_lock("job", {}, first.handler());
  REQUIRE(here.loop.run_until([&] { return first.there(); }));
  CHECK(here.engine.hold_count("job") == 0);
  CHECK_FALSE(here.engine.try_lock("job"));
  const Job order("order 4711");
  here.engine.async_try_lock("order", {.job = order}, second.handler());
  REQUIRE(here.loop.run_until([&] { return second.there(); }));
  {
    const Job::Scope scope(order);
    CHECK(here.engine.hold_count("order") == 1);
    here.engine.async_try_lock("order", {}, third.handler());
  }
  REQUIRE(here.loop.run_until([&] { return third.there(); }));
  REQUIRE(third->has_value());
  CHECK((**third).token() == (**second).token());
  here.engine.async_try_lock("order", {.job = "order 4712"}, fourth.handler());
  REQUIRE(here.loop.run_until([&] { return fourth.there(); }));
  CHECK(fourth->refused() == Refused::busy);
}

TEST_CASE("a deadlock of jobs that wait asynchronously is told to one of them") {
  Looped here;
  Answer a, b, a_waits, b_waits;
  here.engine.async_try_lock("x", {.job = "a"}, a.handler());
  here.engine.async_try_lock("y", {.job = "b"}, b.handler());
  REQUIRE(here.loop.run_until([&] { return a.there() && b.there(); }));
  REQUIRE(a->has_value());
  REQUIRE(b->has_value());
  here.engine.async_lock("y", {.job = "a"}, a_waits.handler());
  here.engine.async_lock("x", {.job = "b"}, b_waits.handler());
  REQUIRE(here.loop.run_until([&] { return a_waits.there() || b_waits.there(); }));
  auto& told = a_waits.there() ? a_waits : b_waits;
  REQUIRE(told->error() != nullptr);
  CHECK(told->error()->fault() == Fault::deadlock);
  (&told == &a_waits ? a : b).drop();
  auto& other = &told == &a_waits ? b_waits : a_waits;
  REQUIRE(here.loop.run_until([&] { return other.there(); }));
  CHECK(other->has_value());
}

TEST_CASE("those who wait in turn are served in turn, with threads among them") {
  Looped here;
  auto held = here.engine.lock("job", {.reentrance = Reentrance::none});
  std::mutex mutex;
  std::vector<int> order;  // guarded by mutex
  const auto served = [&](int i) {
    const std::lock_guard guard(mutex);
    order.push_back(i);
  };
  std::vector<std::jthread> threads;
  const LockOptions in_turn{.fairness = Fairness::fifo};
  for (int i = 0; i < 6; ++i) {
    if (i % 2 == 1) {
      threads.emplace_back([&, i] {
        const auto lock = here.engine.try_lock_for("job", 4min, in_turn);
        CHECK(lock);
        served(i);
      });
    } else {
      here.engine.async_lock("job", in_turn, [&, i](Result<Lock> result) {
        REQUIRE(result);
        served(i);
      });
    }
    REQUIRE(eventually([&] { return here.engine.waiters("job").size() == static_cast<std::size_t>(i) + 1; }));
  }
  held.release();
  CHECK(here.loop.run_until([&] {
    const std::lock_guard guard(mutex);
    return order.size() == 6;
  }));
  threads.clear();
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a node's entries are taken asynchronously as well") {
  Looped here({.node = "a"});
  Answer first, second;
  here.engine.async_try_lock("job", {.reentrance = Reentrance::node}, first.handler());
  REQUIRE(here.loop.run_until([&] { return first.there(); }));
  here.engine.async_lock("job", {.reentrance = Reentrance::node}, second.handler());
  REQUIRE(here.loop.run_until([&] { return second.there(); }));
  REQUIRE(first->has_value());
  REQUIRE(second->has_value());
  CHECK((**first).token() == (**second).token());
}

TEST_CASE("whatever is asked for at the same time is held in the mode that it was asked for in") {
  Looped here({.connections = 1});
  std::vector<Lock> locks;
  const auto name = [](int i) { return "job " + std::to_string(i); };
  constexpr int count = 32;
  for (int i = 0; i < count; ++i) {
    LockOptions options{.reentrance = i % 2 == 0 ? Reentrance::none : Reentrance::node};
    if (i % 4 == 0) options.mode = Mode::shared;
    here.engine.async_try_lock(name(i), options, [&](Result<Lock> result) {
      REQUIRE(result);
      locks.push_back(std::move(*result));
    });
  }
  REQUIRE(here.loop.run_until([&] { return locks.size() == count; }));
  for (int i = 0; i < count; ++i)
    CHECK(here.engine.inspect(name(i))->mode == (i % 4 == 0   ? Mode::shared
                                                 : i % 2 == 0 ? Mode::exclusive
                                                              : Mode::node));
  for (auto& lock : locks) CHECK(lock.release() == Released::freed);
}

TEST_CASE("without an executor handlers run one after another on a thread of the engine, which none of them can end") {
  Database database;
  auto engine = database.engine();
  std::atomic<int> inside{0}, most{0}, served{0};
  std::atomic<bool> elsewhere{true};
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < 20; ++i)
    engine.async_lock("job", {}, [&](Result<Lock> result) {
      most = std::max(most.load(), ++inside);
      if (std::this_thread::get_id() == here) elsewhere = false;
      --inside;
      ++served;
      if (result) throw std::runtime_error("the handler's own");
    });
  CHECK(eventually([&] { return served == 20; }));
  CHECK(most == 1);
  CHECK(elsewhere);
}

TEST_CASE("the end of the engine answers all who wait, and nothing is left held") {
  Database database;
  auto holder = database.engine();
  auto held = holder.lock("job");
  Loop loop;
  std::vector<std::unique_ptr<Answer>> answers;
  {
    auto engine = database.engine({.executor = loop.executor()});
    for (int i = 0; i < 30; ++i) {
      answers.push_back(std::make_unique<Answer>());
      engine.async_lock(i % 3 == 0 ? name_of(i) : "job", {.fairness = i % 5 == 0 ? Fairness::fifo : Fairness::barging},
                        answers.back()->handler());
    }
  }
  loop.run();
  for (auto& one : answers) {
    REQUIRE(one->count() == 1);
    if (!(*one)->has_value()) {
      REQUIRE((*one)->error() != nullptr);
      CHECK((*one)->error()->fault() == Fault::misuse);
    }
  }
  answers.clear();
  held.release();
  CHECK(eventually([&] { return holder.waiters("*").empty(); }));
  CHECK(holder.try_lock("job"));
}

TEST_CASE("the engine may end inside a handler, and a handler may ask again") {
  Database database;
  auto engine = std::make_shared<Engine>(database.engine());
  std::atomic<int> turns{0};
  std::atomic<bool> gone{false};
  std::function<void(Result<Lock>)> again = [&](Result<Lock> result) {
    if (result) static_cast<void>(result->release());
    if (++turns < 10) return engine->async_lock("job", {}, again);
    engine.reset();
    gone = true;
  };
  engine->async_lock("job", {}, again);
  CHECK(eventually([&] { return gone.load(); }));
  CHECK(turns == 10);
}

TEST_CASE("an answer that the executor does not take is given back") {
  Database database;
  std::atomic<int> refused{0};
  auto engine = database.engine({.executor = [&](const std::function<void()>&) {
    ++refused;
    throw std::runtime_error("the loop has ended");
  }});
  std::atomic<bool> called{false};
  engine.async_lock("job", {}, [&](Result<Lock>) { called = true; });
  CHECK(eventually([&] { return refused == 1; }));
  CHECK(eventually([&] { return database.admin().owner("job").empty(); }));
  CHECK_FALSE(called);
}

TEST_CASE("a Lock that was released before is answered at once what became of it") {
  Looped here;
  auto lock = here.engine.lock("job");
  lock.release();
  std::optional<Released> end;
  here.engine.async_release(std::move(lock), [&](Released released) { end = released; });
  REQUIRE(here.loop.run_until([&] { return end.has_value(); }));
  CHECK(end == Released::freed);
  auto forced = here.engine.lock("forced");
  free_by_force(here.engine, "forced");
  end.reset();
  here.engine.async_release(std::move(forced), [&](Released released) { end = released; });
  REQUIRE(here.loop.run_until([&] { return end.has_value(); }));
  CHECK(end == Released::was_lost);
}

TEST_CASE(
    "who releases asynchronously is out at once: the same thread is granted anew, and may write after it has read") {
  Looped here;
  for (int i = 0; i < 20; ++i) {
    auto lock = here.engine.lock("job");
    const auto token = lock.token();
    here.engine.async_release(std::move(lock));
    CHECK(here.engine.hold_count("job") == 0);
    const auto again = here.engine.try_lock_for("job", 1min, {.max_hold = 1h});
    REQUIRE(again);
    CHECK(again->token() > token);

    auto reader = here.engine.lock("book", {.mode = Mode::shared});
    here.engine.async_release(std::move(reader));
    CHECK(here.engine.try_lock_for("book", 1min).has_value());
  }
  // One entry of two is no release.
  auto outer = here.engine.lock("job");
  auto inner = here.engine.lock("job");
  std::optional<Released> end;
  here.engine.async_release(std::move(inner), [&](Released released) { end = released; });
  CHECK(here.engine.hold_count("job") == 1);
  REQUIRE(here.loop.run_until([&] { return end.has_value(); }));
  CHECK(end == Released::still_held);
  CHECK(outer.valid());
}

TEST_CASE("the executor is called on threads of the engine, whatever becomes of a release") {
  Database database;
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> on_caller = false;
  std::atomic<int> told = 0;
  EngineOptions options;
  options.executor = [&](const std::function<void()>& handler) {
    if (std::this_thread::get_id() == caller) on_caller = true;
    handler();
  };
  auto engine = database.engine(options);
  const auto outer = engine.lock("job");
  engine.async_release(engine.lock("job"),
                       [&](Released released) { told += released == Released::still_held ? 1 : 0; });
  auto over = engine.lock("over");
  over.release();
  engine.async_release(std::move(over), [&](Released released) { told += released == Released::freed ? 1 : 0; });
  engine.async_release(engine.lock("held"), [&](Released released) { told += released == Released::freed ? 1 : 0; });
  CHECK(eventually([&] { return told == 3; }));
  CHECK_FALSE(on_caller);
}

TEST_CASE("readers and permits that are asked for behind each other come in as long as there is room") {
  EngineOptions patient;
  patient.polling = {.first = 1h, .longest = 1h};
  Looped here(patient);
  constexpr int many = 20;
  for (const auto mode : {Mode::shared, Mode::permits}) {
    const std::string name(to_string(mode));
    LockOptions options;
    options.mode = mode;
    options.limit = mode == Mode::permits ? many : 0;
    options.reentrance = Reentrance::none;
    std::vector<Answer> answers(many);
    for (auto& answer : answers) here.engine.async_try_lock_for(name, far_longer(), options, answer.handler());
    for (auto& answer : answers) {
      REQUIRE(here.loop.run_until([&] { return answer.there(); }));
      REQUIRE(answer->has_value());
      CHECK((**answer).valid());
    }
  }
}

TEST_CASE("releases that go alone are tried, each of them, though those before them have used up the time") {
  constexpr std::size_t many = 200;
  Database database;
  auto engine = database.engine({.timeouts = {.release = 50ms}});
  std::vector<Lock> locks;
  for (std::size_t i = 0; i < many; ++i)
    locks.push_back(engine.lock("job " + std::to_string(i), {.mode = Mode::shared, .reentrance = Reentrance::none}));
  std::atomic<std::size_t> told{0}, freed{0};
  for (auto& lock : locks)
    engine.async_release(std::move(lock), [&](Released released) {
      if (released == Released::freed) ++freed;
      ++told;
    });
  CHECK(eventually([&] { return told == many; }));
  CHECK(freed > many / 2);  // a statement may hang for longer on a busy machine
  CHECK(eventually([&] { return database.admin().held() == 0; }));
}

TEST_CASE("what was stopped before it was asked for is not granted, whether the name is free or not") {
  Looped here;
  std::stop_source stop;
  stop.request_stop();
  std::vector<Answer> answers(600);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto name = name_of(static_cast<int>(i % 3 == 0 ? i % 10 : i));
    if (i % 2 == 0) here.engine.async_lock(name, {}, stop.get_token(), answers[i].handler());
    else here.engine.async_try_lock_for(name, 1min, {}, stop.get_token(), answers[i].handler());
  }
  for (auto& answer : answers) {
    REQUIRE(here.loop.run_until([&] { return answer.there(); }));
    CHECK(answer->refused() == Refused::stopped);
    CHECK(answer.on() == std::this_thread::get_id());
  }
  CHECK(here.engine.list("*").empty());  // nobody has asked for them
}

TEST_CASE("after a lack of memory at any moment all are answered, each once, and every line goes on" *
          doctest::skip(!allocations_are_counted())) {
  Database database;
  auto holder = database.engine();
  const LockOptions brief{.lease = 2s * slowness(),
                          .reentrance = Reentrance::none};  // what cannot be released ends soon
  for (long turn = 0; turn < 30; ++turn) {
    const bool at_release = turn % 2 == 1;  // from where each makes room for the next one
    const auto nth = at_release ? 1 + 8 * turn : 1 + turn;
    CAPTURE(nth);
    CAPTURE(at_release);
    std::vector<std::atomic<int>> calls(16);
    std::atomic<int> last = 0;
    {
      auto engine = database.engine();
      auto held = holder.lock("job", brief);
      std::stop_source stop;
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const auto handler = [&calls, i](const Result<Lock>&) { ++calls[i]; };
        const auto name = name_of(static_cast<int>(i));
        if (i < 6) engine.async_lock("job", brief, handler);
        else if (i < 9) engine.async_try_lock_for("job", 20ms, brief, handler);
        else if (i < 11) engine.async_lock("job", brief, stop.get_token(), handler);
        else engine.async_try_lock(name, brief, handler);
        if (i == 5 && !at_release) refuse_allocations(nth, 4);
      }
      if (at_release) refuse_allocations(nth, 4);
      held.release();
      stop.request_stop();
      for (std::size_t i = 0; i < calls.size(); ++i) {
        CAPTURE(i);
        REQUIRE(eventually([&] { return calls[i] > 0; }));
      }
      refuse_allocations(1, 0);
      engine.async_lock("job", brief, [&](const Result<Lock>&) { ++last; });
      REQUIRE(eventually([&] { return last == 1; }));
    }
    for (const auto& each : calls) CHECK(each == 1);
  }
  // What could not be released for lack of memory ends with its lease.
  for (const auto& row : holder.list("*")) CHECK(holder.try_lock_for(row.name, far_longer()));
}

TEST_CASE("a handler that is not taken for lack of memory may use the engine when it goes" *
          doctest::skip(!allocations_are_counted())) {
  Looped here;
  const auto held = here.engine.lock("job", {.reentrance = Reentrance::none});
  int thrown = 0;
  std::atomic<int> gone = 0;
  const auto uses_engine = [&](const int* one) {
    delete one;
    try {
      static_cast<void>(here.engine.stats());
    } catch (const std::exception&) {  // what is refused may be refused here
    }
    ++gone;
  };
  refuse_allocations(1, 0);  // this thread is spared from now on
  for (long nth = 1; nth < 30; ++nth)
    for (const auto* name : {"job", "free"}) {
      auto mark = std::shared_ptr<const int>(new int(0), uses_engine);
      std::jthread([&] {
        Engine::LockHandler handler = [mark = std::move(mark)](const Result<Lock>&) {};
        refuse_allocations_here(nth);
        try {
          here.engine.async_try_lock_for(name, 1ms, {}, std::move(handler));
        } catch (const std::exception&) { ++thrown; }
        refuse_allocations_here(0);
      }).join();
    }
  CHECK(thrown > 10);
  CHECK(here.loop.run_until([&] { return gone == 2 * 29; }));
}
