// Connections are shared, bounded, and thrown away when in doubt.
#include "store/pool.hpp"

#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

using namespace dlock;
using namespace dlock::store;
using namespace std::chrono_literals;

namespace {

struct Counts {
  std::atomic<int> opened = 0;
  int closed = 0;
  Duration lock_wait{};  // of all
  int unanswered = 0;    // the number of the one that owes an answer
  bool at_work = false;  // the server, on all that were given up
};

class Idle final : public dialects::Connection {
 public:
  explicit Idle(Counts& counts) : number(++counts.opened), counts_(counts) {}
  ~Idle() override { ++counts_.closed; }
  const Answer& run(const dialects::Statement&, std::span<const Argument>, Deadline) override { return answer_; }
  const Answer& run_rows(const dialects::Statement&, std::span<const Argument>, std::size_t, Deadline) override {
    return answer_;
  }
  void script(std::string_view, Deadline) override { broken_ = true; }
  std::string default_schema(Deadline) override { return std::to_string(number); }
  std::vector<std::string> weaknesses(Deadline) override { return {}; }
  bool usable() const noexcept override { return !broken_; }
  bool at_rest() const noexcept override { return number != counts_.unanswered; }
  bool drain(const Deadline&) noexcept override { return !counts_.at_work; }
  std::string server() const override { return {}; }
  Duration lock_wait() const noexcept override { return counts_.lock_wait; }

  const int number;

 private:
  Counts& counts_;
  Answer answer_;
  bool broken_ = false;
};

Pool::Loan opened(Pool& pool, const Deadline& deadline, Pool::Opening opening = Pool::Opening::at_once) {
  auto loan = pool.borrow(deadline, opening);
  loan.open(deadline);
  return loan;
}

struct Bench {
  Counts counts{};
  Pool pool;
  explicit Bench(unsigned limit) : pool([this](Deadline) { return std::make_unique<Idle>(counts); }, limit) {}
  Pool::Loan take(Duration patience = 20s) { return opened(pool, later(BootClock::now(), patience)); }
};

std::string number(const Pool::Loan& loan) { return loan->default_schema(Deadline::max()); }

}  // namespace

TEST_CASE("connections are opened when they are needed, and the last one given back is the next one lent") {
  Bench bench(3);
  CHECK(bench.counts.opened == 0);
  {
    auto one = bench.take();
    auto two = bench.take();
    CHECK(number(one) == "1");
    CHECK(number(two) == "2");
    one.sound();
    two.sound();
  }  // two goes back before one
  CHECK(number(bench.take()) == "1");
  CHECK(bench.counts.opened == 2);
}

TEST_CASE("a connection that still owes an answer is lent only where there is no other, and no room for one") {
  Bench bench(2);
  bench.take().sound();
  bench.counts.unanswered = 1;
  {
    auto second = bench.take();
    CHECK(number(second) == "2");
    second.sound();
    auto first = bench.take();
    CHECK(number(first) == "1");
    first.sound();
  }
  CHECK(number(bench.take()) == "2");
}

TEST_CASE("a connection that nobody called sound is thrown away, with all that were idle") {
  Bench bench(2);
  {
    auto one = bench.take();
    auto two = bench.take();
    two.sound();
  }
  CHECK(bench.counts.closed == 2);
  CHECK(number(bench.take()) == "3");
}

TEST_CASE("a connection that broke is thrown away whatever is said of it") {
  Bench bench(1);
  {
    auto loan = bench.take();
    loan->script("", Deadline::max());
    loan.sound();
  }
  CHECK(bench.counts.closed == 1);
}

TEST_CASE(
    "what was given up before its answer came is let go once the server is done with it, or when it is too many") {
  Bench bench(2);
  const Failure late(Cause::timed_out, "late", {}, true);
  const auto give_up = [&](bool stopped) {
    std::stop_source source;
    const Deadline deadline(Instant::max(), source.get_token());
    auto loan = bench.take();
    if (stopped) source.request_stop();
    loan->script("", deadline);  // an answer that is late leaves it broken
    loan.failed(late, deadline);
  };
  for (const bool stopped : {true, false}) give_up(stopped);
  CHECK(bench.counts.closed == 2);  // the server had ended them
  bench.counts.at_work = true;
  for (const bool stopped : {true, false}) give_up(stopped);
  CHECK(bench.counts.closed == 2);
  CHECK(bench.pool.use().open == 0);
  bench.pool.drain(Instant::min());
  CHECK(bench.counts.closed == 2);
  for (int i = 0; i < 99; ++i) give_up(true);
  CHECK(bench.counts.closed == 3);  // the oldest
  bench.counts.at_work = false;
  bench.pool.drain(Instant::min());
  CHECK(bench.counts.closed == 103);
}

TEST_CASE("no more than the limit are open, and the wait for one ends with the deadline") {
  Bench bench(1);
  const auto loan = bench.take();
  const auto begin = BootClock::now();
  try {
    auto second = opened(bench.pool, later(begin, 30ms));
    FAIL("was lent a connection above the limit");
  } catch (const Failure& failure) {
    CHECK(failure.cause() == Cause::timed_out);
    CHECK_FALSE(failure.may_have_run());
  }
  CHECK(BootClock::now() - begin >= 30ms);
  CHECK(bench.counts.opened == 1);
}

TEST_CASE("who waits gets the connection that is given back") {
  Bench bench(1);
  auto loan = std::make_unique<Pool::Loan>(bench.take());
  auto waiting = std::async(std::launch::async, [&] {
    auto second = bench.take();
    second.sound();
    return number(second);
  });
  loan->sound();
  loan.reset();
  CHECK(waiting.get() == "1");
}

TEST_CASE("a place whose connection could not be opened is free again") {
  Counts counts;
  int tries = 0;
  Pool pool(
      [&](Deadline) -> std::unique_ptr<dialects::Connection> {
        if (++tries == 1) throw Failure(Cause::refused, "not there");
        return std::make_unique<Idle>(counts);
      },
      1);
  CHECK_THROWS_AS(opened(pool, later(BootClock::now(), 1s)), Failure);
  CHECK(number(opened(pool, later(BootClock::now(), 1s))) == "1");
}

TEST_CASE("who needs a connection at once does not stand in line behind who waits for one to come back") {
  Bench bench(3);
  bench.pool.adopt(std::make_unique<Idle>(bench.counts), 1min);  // so far away is the server
  const auto kept = bench.take();
  auto patient = std::async(std::launch::async, [&] {
    return number(opened(bench.pool, later(BootClock::now(), 10min), Pool::Opening::if_need_be));
  });
  while (bench.pool.use().waiting == 0) std::this_thread::yield();
  const auto at_once = bench.take();
  patient.get();
  CHECK(bench.counts.opened == 3);
}

TEST_CASE("a connection opened elsewhere is one of the pool's") {
  Bench bench(1);
  bench.pool.adopt(std::make_unique<Idle>(bench.counts), 1ms);
  CHECK(number(bench.take()) == "1");
  CHECK(bench.counts.opened == 1);
}

TEST_CASE("who is told to stop does not wait for a connection, and is not in the way of the next") {
  Bench bench(1);
  auto loan = std::make_unique<Pool::Loan>(bench.take());
  std::stop_source stop;
  const Deadline never(later(BootClock::now(), 1h), stop.get_token());
  auto stopped = std::async(std::launch::async, [&] {
    try {
      const auto second = opened(bench.pool, never);
    } catch (const Failure& failure) { return failure.cause() == Cause::timed_out && !failure.may_have_run(); }
    return false;
  });
  CHECK(stopped.wait_for(50ms) == std::future_status::timeout);
  stop.request_stop();
  CHECK(stopped.get());
  auto waiting = std::async(std::launch::async, [&] { return number(bench.take()); });
  CHECK(waiting.wait_for(50ms) == std::future_status::timeout);
  loan->sound();
  loan.reset();
  CHECK(waiting.get() == "1");
}

TEST_CASE("a connection whose caller did not wait for the answer goes alone") {
  Bench bench(2);
  {
    auto one = bench.take();
    auto two = bench.take();
    two.sound();
    std::stop_source stop;
    const Deadline deadline(later(BootClock::now(), 1h), stop.get_token());
    stop.request_stop();
    one.failed(Failure(Cause::timed_out, "no answer", {}, true), deadline);
  }
  CHECK(bench.counts.closed == 1);
  CHECK(number(bench.take()) == "2");
}

TEST_CASE("a short request on a connection that was idle leaves half of the time for another connection") {
  Bench bench(1);
  const auto now = BootClock::now();
  const Deadline deadline = later(now, 1h);
  {
    auto opened = bench.take();
    CHECK(opened.promptly(deadline).at() == deadline.at());
    opened.sound();
  }
  auto idle = bench.take();
  CHECK(idle.promptly(deadline).at() < later(now, 31min));
  CHECK(idle.promptly(deadline).at() >= later(now, 30min));
  // One that was just given back by somebody else has answered just now.
  auto waiting = std::async(std::launch::async, [&] {
    auto handed = bench.take();
    handed.sound();
    return handed.promptly(deadline).at() == deadline.at();
  });
  REQUIRE(dlock::test::eventually([&] { return bench.pool.use().waiting > 0; }));
  CHECK(waiting.wait_for(50ms) == std::future_status::timeout);
  idle.sound();
  idle.end();
  CHECK(waiting.get());
}

TEST_CASE("where it takes long to find a row locked, a request on a connection that was idle has the time for that") {
  Bench bench(1);
  bench.counts.lock_wait = 40min;
  bench.take().sound();
  auto idle = bench.take();
  const auto now = BootClock::now();
  CHECK(idle.promptly(later(now, 1h)).at() >= later(now, 40min));
  CHECK(idle.promptly(later(now, 1h)).at() < later(now, 41min));
  CHECK(idle.promptly(later(now, 30min)).at() == later(now, 30min));
  CHECK(idle.promptly(later(now, 3h)).at() >= later(now, 90min));
}

TEST_CASE(
    "who need not have a connection of its own waits until one could have come back, and only then opens another") {
  Bench bench(2);
  bench.pool.adopt(std::make_unique<Idle>(bench.counts), 10s);  // so far away is the server
  const auto if_need_be = [&](Deadline deadline) {
    return std::async(std::launch::async, [&bench, deadline] {
      auto loan = opened(bench.pool, deadline, Pool::Opening::if_need_be);
      loan.sound();
      return number(loan);
    });
  };
  auto loan = std::make_unique<Pool::Loan>(bench.take());
  auto waiting = if_need_be(later(BootClock::now(), 1min));
  loan->sound();
  loan.reset();
  CHECK(waiting.get() == "1");
  CHECK(bench.counts.opened == 1);

  Bench nearer(2);
  nearer.pool.adopt(std::make_unique<Idle>(nearer.counts), 1ms);
  const auto kept = nearer.take();
  auto another = opened(nearer.pool, later(BootClock::now(), 1min), Pool::Opening::if_need_be);
  CHECK(number(another) == "2");
}

TEST_CASE("who waits for a connection that another opens is told why there is none, and not that all are at work") {
  Counts counts;
  std::promise<void> reached;
  std::promise<void> dead;
  bool silent = true;
  Pool pool(
      [&](Deadline) -> std::unique_ptr<dialects::Connection> {
        if (std::exchange(silent, false)) {
          reached.set_value();
          dead.get_future().wait();
          throw Failure(Cause::refused, "the network is unreachable", "08001");
        }
        return std::make_unique<Idle>(counts);
      },
      1);
  const auto refusal = [&] {
    try {
      opened(pool, later(BootClock::now(), 20ms));
    } catch (const Failure& failure) { return failure; }
    return Failure(Cause::rejected, "there was one");
  };
  auto opening = std::async(std::launch::async, [&] { CHECK_THROWS_AS(opened(pool, Deadline::max()), Failure); });
  reached.get_future().wait();
  CHECK(refusal().cause() == Cause::refused);
  CHECK(std::string(refusal().what()).find("could be opened in time") != std::string::npos);
  dead.set_value();
  opening.get();

  // The next one that is opened takes its time, too.
  auto loan = pool.borrow(Deadline::max());
  CHECK(refusal().cause() == Cause::refused);
  CHECK(std::string(refusal().what()) == "the network is unreachable");
  CHECK(refusal().code() == "08001");

  loan.open(Deadline::max());
  CHECK(refusal().cause() == Cause::timed_out);
  CHECK(std::string(refusal().what()).find("became free") != std::string::npos);
}

TEST_CASE("who waits in vain for a connection is told what the last request failed with, until one is answered again") {
  Bench bench(1);
  const auto refusal = [&] {
    try {
      opened(bench.pool, later(BootClock::now(), 20ms));
    } catch (const Failure& failure) { return failure; }
    return Failure(Cause::rejected, "there was one");
  };
  const auto fail = [&](const Failure& failure) {
    auto loan = bench.take();
    const auto failing = [&](dialects::Connection&, const Deadline&) -> bool { throw failure; };
    CHECK_THROWS_AS(loan.use(Deadline::max(), failing), Failure);
  };
  const auto says = [](const Failure& failure, const char* words) {
    return std::string(failure.what()).find(words) != std::string::npos;
  };
  fail(Failure(Cause::read_only, "the server is read-only", "25006"));
  // Nor does it matter that a connection can be opened, or that somebody had no time left to ask.
  fail(Failure(Cause::timed_out, "there was no time left to ask"));
  {
    const auto loan = bench.take();
    const auto told = refusal();
    CHECK(told.cause() == Cause::read_only);
    CHECK(told.code() == "25006");
    CHECK(says(told, "the server is read-only; no connection of the pool became free"));
  }
  fail(Failure(Cause::timed_out, "no answer in time", {}, true));
  {
    auto loan = bench.take();
    CHECK(refusal().cause() == Cause::timed_out);
    CHECK(says(refusal(), "no answer in time; no connection"));
    CHECK_FALSE(refusal().may_have_run());
    loan.use(Deadline::max(), [](dialects::Connection&, const Deadline&) { return true; });
  }
  // A row that is locked is an answer, too.
  fail(Failure(Cause::locked, "the row is locked"));
  const auto loan = bench.take();
  CHECK(refusal().cause() == Cause::timed_out);
  CHECK_FALSE(says(refusal(), "no answer in time"));
  CHECK(says(refusal(), "became free in time, and no request on one was answered meanwhile"));
}

TEST_CASE("who waits in vain while others are answered is told that connections are too few, and no more") {
  Bench bench(1);
  for (auto patience = 200ms;; patience *= 2) {
    REQUIRE(patience < 1h);
    auto loan = bench.take();
    std::promise<void> over;
    auto first = std::async(std::launch::async, [&] {
      auto next = bench.take();
      over.get_future().wait();
      next.sound();
    });
    while (bench.pool.use().waiting < 1) std::this_thread::yield();
    auto second = std::async(std::launch::async, [&] {
      try {
        bench.take(patience);
      } catch (const Failure& failure) { return std::string(failure.what()); }
      return std::string("there was one");
    });
    bool both = false;
    while (second.wait_for(0s) == std::future_status::timeout && !both) both = bench.pool.use().waiting == 2;
    loan.sound();
    loan.end();
    const auto told = second.get();
    over.set_value();
    first.get();
    // Else the second was not there early enough, or the answer came too late for it.
    if (both && told == "no connection of the pool became free in time (EngineOptions::connections)") return;
  }
}
