// This file knows that connections are shared, bounded, and thrown away when in doubt.
#include "store/pool.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace dlock;
using namespace dlock::store;
using namespace std::chrono_literals;

namespace {

struct Counts {
  int opened = 0, closed = 0;
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
  std::string server() const override { return {}; }

  const int number;

 private:
  Counts& counts_;
  Answer answer_;
  bool broken_ = false;
};

struct Bench {
  Counts counts{};
  Pool pool;
  explicit Bench(unsigned limit) : pool([this](Deadline) { return std::make_unique<Idle>(counts); }, limit) {}
  Pool::Loan take() { return pool.take(later(BootClock::now(), 20s)); }
};

std::string number(const Pool::Loan& loan) { return loan->default_schema({}); }

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
    loan->script("", {});
    loan.sound();
  }
  CHECK(bench.counts.closed == 1);
}

TEST_CASE("no more than the limit are open, and the wait for one ends with the deadline") {
  Bench bench(1);
  const auto loan = bench.take();
  const auto begin = BootClock::now();
  try {
    auto second = bench.pool.take(later(begin, 30ms));
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
  CHECK_THROWS_AS(pool.take(later(BootClock::now(), 1s)), Failure);
  CHECK(number(pool.take(later(BootClock::now(), 1s))) == "1");
}

TEST_CASE("a connection opened elsewhere is one of the pool's") {
  Bench bench(1);
  bench.pool.adopt(std::make_unique<Idle>(bench.counts));
  CHECK(number(bench.take()) == "1");
  CHECK(bench.counts.opened == 1);
}
