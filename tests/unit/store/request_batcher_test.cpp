// Those who wait for their turn travel together; each gets its own answer, and goes by its own
// deadline.
#include "store/request_batcher.hpp"

#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>

using namespace dlock;
using namespace dlock::store;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Deadline in(std::chrono::milliseconds length) { return later(BootClock::now(), length); }

// One turn at a time; what has it waits until it is let go.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool taken = false;
  bool closed = false;  // nothing comes back
  int in_the_air = 0;
  std::vector<std::vector<std::string>> flights{};
  std::vector<Instant> deadlines{};                                                   // of each
  std::function<void(const std::vector<std::string>&)> weather = [](const auto&) {};  // may throw
  bool opens = false;                                                                 // turns come without a connection

  template <class Change>
  void change(Change change) {
    const std::lock_guard guard(mutex);
    change();
    changed.notify_all();
  }
  void close() {
    change([&] { closed = true; });
  }
  void open() {
    change([&] { closed = false; });
  }
  bool flying() {
    const std::lock_guard guard(mutex);
    return in_the_air > 0;
  }
};

class GateTurn {
 public:
  GateTurn(Gate& gate, bool with_connection) : is_open(with_connection), gate_(&gate) {}
  GateTurn(GateTurn&& other) noexcept : is_open(other.is_open), gate_(std::exchange(other.gate_, nullptr)) {}
  GateTurn& operator=(GateTurn&&) = delete;
  ~GateTurn() {
    if (gate_ != nullptr) gate_->change([&] { gate_->taken = false; });
  }
  bool is_open;

 private:
  Gate* gate_;
};

struct KeptText {
  explicit KeptText(const std::string& name) : text(name) {}
  const std::string& view() const { return text; }
  const std::string text;
};

// A question is a name; its answer is the name once more, in brackets: that of "locked" leaves open what was done
// before. What begins with "shy" must go alone; what is in capitals is of another kind.
struct Trip {
  using View = std::string;
  using Kept = KeptText;
  using Result = std::string;
  using Turn = GateTurn;
  Gate* gate;

  static std::string_view name(const std::string& view) { return view; }
  static std::size_t kind(const std::string& view) { return view.front() >= 'A' && view.front() <= 'Z' ? 1 : 0; }
  static bool is_open(const Turn& turn) { return turn.is_open; }
  static Failure no_turn() { return {Cause::timed_out, "no turn in time"}; }
  static bool may_be_of_one(const Failure& failure) {
    return failure.cause() == Cause::locked || failure.cause() == Cause::rejected;
  }
  static bool leaves_open(const std::string& result) { return result == "<locked>"; }
  Turn turn(Deadline deadline) const {
    std::unique_lock guard(gate->mutex);
    if (!gate->changed.wait_until(guard, deadline.at(), [&] { return !gate->taken; }))
      throw Failure(Cause::timed_out, "no turn");
    gate->taken = true;
    return {*gate, !gate->opens};
  }
  void fly(const std::vector<std::string>& names, Deadline deadline) const {
    std::unique_lock guard(gate->mutex);
    gate->flights.push_back(names);
    gate->deadlines.push_back(deadline.at());
    ++gate->in_the_air;
    const bool back = gate->changed.wait_until(guard, deadline.at(), [&] { return !gate->closed; });
    --gate->in_the_air;
    if (!back) throw Failure(Cause::timed_out, "no answer", {}, true);
    gate->weather(names);
  }
  std::string alone(const std::string& name, Turn turn, Deadline deadline) const {
    const Turn mine = std::move(turn);
    fly({name}, deadline);
    return "<" + name + ">";
  }
  std::vector<std::optional<std::string>> together(std::span<const std::string> names, Turn turn,
                                                   Deadline deadline) const {
    const Turn mine = std::move(turn);
    fly({names.begin(), names.end()}, deadline);
    std::vector<std::optional<std::string>> answers;
    for (const auto& name : names)
      if (name.starts_with("shy")) answers.emplace_back();
      else answers.push_back("[" + name + "]");
    return answers;
  }
};

struct Airport {
  Gate gate{};
  RequestBatcher<Trip> batcher;
  std::vector<std::future<std::string>> answers{};

  explicit Airport(std::size_t most = 64) : batcher(Trip{&gate}, most) {}

  // Takes the only turn, and keeps it in the air.
  void begin(const std::string& name = "first", std::chrono::milliseconds patience = 1min) {
    gate.close();
    leave(name, patience);
    REQUIRE(eventually([&] { return gate.flying(); }));
  }
  void leave(std::string name, std::chrono::milliseconds patience = 1min) {
    answers.push_back(std::async(
        std::launch::async, [this, name = std::move(name), patience] { return batcher.send(name, in(patience)); }));
  }
  // One that waits for its turn in front, and then those behind it, in this order.
  void queue(const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      leave(names[i]);
      if (i == 0) REQUIRE(eventually([&] { return batcher.led(); }));
      REQUIRE(eventually([&] { return batcher.queued() == i; }));
    }
  }
  std::string answer(std::size_t at) { return answers.at(at).get(); }
};

using Flights = std::vector<std::vector<std::string>>;

}  // namespace

TEST_CASE("who has nobody before it leaves alone, at once") {
  Airport airport;
  CHECK(airport.batcher.send("a", in(1min)) == "<a>");
  CHECK(airport.batcher.send("b", in(1min)) == "<b>");
  CHECK(airport.gate.flights == Flights{{"a"}, {"b"}});
}

TEST_CASE("those that come while one is on its way leave together, in the order of names") {
  Airport airport;
  airport.begin();
  airport.queue({"m", "z", "a", "k"});
  airport.gate.open();
  CHECK(airport.answer(0) == "<first>");
  CHECK(airport.answer(1) == "[m]");
  CHECK(airport.answer(2) == "[z]");
  CHECK(airport.answer(3) == "[a]");
  CHECK(airport.answer(4) == "[k]");
  CHECK(airport.gate.flights == Flights{{"first"}, {"a", "k", "m", "z"}});
}

TEST_CASE("no more than the limit travel together, and the next of the rest leads") {
  Airport airport(3);
  airport.begin();
  airport.queue({"a", "b", "c", "d", "e", "f", "g"});
  airport.gate.open();
  for (std::size_t i = 1; i < airport.answers.size(); ++i) airport.answer(i);
  CHECK(airport.gate.flights == Flights{{"first"}, {"a", "b", "c"}, {"d", "e", "f"}, {"g"}});
}

TEST_CASE("each kind has its own room in a batch, whoever leads it") {
  struct Case {
    std::vector<std::string> queue;
    Flights flights;
  };
  const std::vector<Case> cases{
      Case{{"a", "b", "c", "K", "L", "M", "d"}, Flights{{"first"}, {"K", "L", "a", "b"}, {"M", "c", "d"}}},
      Case{{"K", "a", "b", "c", "L", "M", "N"}, Flights{{"first"}, {"K", "L", "a", "b"}, {"M", "N", "c"}}},
      Case{{"K", "a", "b"}, Flights{{"first"}, {"K", "a", "b"}}},
  };
  for (const auto& each : cases) {
    Airport airport(2);
    airport.begin();
    airport.queue(each.queue);
    airport.gate.open();
    for (std::size_t i = 1; i < airport.answers.size(); ++i) CHECK(airport.answer(i) == "[" + each.queue[i - 1] + "]");
    CHECK(airport.gate.flights == each.flights);
  }
}

TEST_CASE("of one name only one travels at a time") {
  Airport airport;
  airport.begin();
  airport.queue({"a", "b", "a", "b", "c", "a"});
  airport.gate.open();
  for (std::size_t i = 1; i < airport.answers.size(); ++i) airport.answer(i);
  CHECK(airport.gate.flights == Flights{{"first"}, {"a", "b", "c"}, {"a", "b"}, {"a"}});
}

TEST_CASE("who cannot be answered among many is sent alone") {
  Airport airport;
  airport.begin();
  airport.queue({"a", "shy", "shyer", "z"});
  airport.gate.open();
  CHECK(airport.answer(1) == "[a]");
  CHECK(airport.answer(2) == "<shy>");
  CHECK(airport.answer(3) == "<shyer>");
  CHECK(airport.answer(4) == "[z]");
  Airport other;
  other.begin();
  other.queue({"shy", "b"});
  other.gate.open();
  CHECK(other.answer(1) == "<shy>");
  CHECK(other.answer(2) == "[b]");
}

TEST_CASE("a failure that may be of one makes each go alone, and only that one fails") {
  for (const auto cause : {Cause::rejected, Cause::locked}) {
    Airport airport;
    airport.gate.weather = [&](const auto& names) {
      for (const auto& name : names)
        if (name == "bad") throw Failure(cause, "bad weather");
    };
    airport.begin();
    airport.queue({"a", "bad", "c"});
    airport.gate.open();
    CHECK(airport.answer(1) == "<a>");
    CHECK_THROWS_AS(airport.answer(2), Failure);
    CHECK(airport.answer(3) == "<c>");
  }
}

TEST_CASE("a failure of all reaches each as it is") {
  Airport airport;
  airport.gate.weather = [](const auto& names) {
    if (names.size() > 1) throw Failure(Cause::disconnected, "cut", "08006", true);
  };
  airport.begin();
  airport.queue({"a", "b", "c"});
  airport.gate.open();
  for (std::size_t i = 1; i < airport.answers.size(); ++i) {
    try {
      airport.answer(i);
      FAIL_CHECK("it failed");
    } catch (const Failure& failure) {
      CHECK(failure.cause() == Cause::disconnected);
      CHECK(failure.what() == std::string("cut"));
      CHECK(failure.code() == "08006");
      CHECK(failure.may_have_run());
    }
  }
  CHECK(airport.gate.flights == Flights{{"first"}, {"a", "b", "c"}});
}

TEST_CASE("who is sent alone since a packet of its batch failed is never told that nothing was done by another one") {
  Airport airport;
  bool alone_fails = false;
  airport.gate.weather = [&](const auto& names) {
    if (names.size() > 1) throw Failure(Cause::rejected, "one of many", "22001", true);
    if (alone_fails && names.front() != "first") throw Failure(Cause::disconnected, "not sent");
  };
  for (const bool fails : {false, true}) {
    alone_fails = fails;
    const auto before = airport.answers.size();
    airport.begin();
    airport.queue({"a", "locked", "c"});
    airport.gate.open();
    std::set<std::string> told;
    for (std::size_t i = before + 1; i < airport.answers.size(); ++i) {
      try {
        told.insert(airport.answer(i));
      } catch (const Failure& failure) {
        CHECK(failure.may_have_run());
        told.insert(failure.cause() == Cause::locked ? "locked, in doubt" : failure.what());
      }
    }
    CHECK(told ==
          (fails ? std::set<std::string>{"not sent"} : std::set<std::string>{"<a>", "<c>", "locked, in doubt"}));
    airport.answer(before);
  }
}

TEST_CASE("who is queued goes by its own deadline, and has not been sent") {
  Airport airport;
  airport.begin();
  airport.queue({"front"});
  const auto begin = BootClock::now();
  try {
    airport.batcher.send("hasty", later(begin, 30ms));
    FAIL_CHECK("nobody took it along");
  } catch (const Failure& failure) {
    CHECK(failure.cause() == Cause::timed_out);
    CHECK_FALSE(failure.may_have_run());
  }
  CHECK(BootClock::now() >= later(begin, 30ms));
  CHECK(airport.batcher.queued() == 0);
  airport.gate.open();
  CHECK(airport.answer(1) == "<front>");
}

TEST_CASE("who was taken along goes by its own deadline, and may have been sent") {
  bool taken_along = false;
  for (auto patience = 500ms; !taken_along; patience *= 2) {  // a slow machine may need longer to take it along
    REQUIRE(patience < 1min);
    Airport airport;
    airport.gate.weather = [&](const auto& names) {
      if (names.front() == "first") airport.gate.closed = true;  // for those after it
    };
    airport.begin();
    airport.leave("front", patience);
    eventually([&] { return airport.batcher.led(); }, patience);
    const auto deadline = in(patience * 9 / 10);
    auto hasty = std::async(std::launch::async, [&] { return airport.batcher.send("hasty", deadline); });
    eventually([&] { return airport.batcher.queued() == 1; }, patience);
    airport.gate.open();
    CHECK(airport.answer(0) == "<first>");
    try {
      hasty.get();
      FAIL_CHECK("nothing came back");
    } catch (const Failure& failure) {
      CHECK(failure.cause() == Cause::timed_out);
      taken_along = failure.may_have_run();
    }
    CHECK(BootClock::now() >= deadline.at());
    CHECK_THROWS_AS(airport.answer(1), Failure);
  }
}

TEST_CASE("who has much less time than the leader leads the next") {
  Airport airport;
  airport.begin();
  airport.queue({"patient"});
  airport.leave("hasty", 20s);
  REQUIRE(eventually([&] { return airport.batcher.queued() == 1; }));
  airport.gate.open();
  CHECK(airport.answer(1) == "<patient>");
  CHECK(airport.answer(2) == "<hasty>");
  CHECK(airport.gate.flights == Flights{{"first"}, {"patient"}, {"hasty"}});
}

TEST_CASE("who is of another kind may have less time than the leader, and then the batch has no more") {
  Airport airport;
  airport.begin();
  airport.queue({"patient"});
  const auto before = BootClock::now();
  airport.leave("K", 20s);
  REQUIRE(eventually([&] { return airport.batcher.queued() == 1; }));
  airport.leave("HASTY", 5s);
  REQUIRE(eventually([&] { return airport.batcher.queued() == 2; }));
  airport.gate.open();
  CHECK(airport.answer(1) == "[patient]");
  CHECK(airport.answer(2) == "[K]");
  CHECK(airport.answer(3) == "<HASTY>");
  CHECK(airport.gate.flights == Flights{{"first"}, {"K", "patient"}, {"HASTY"}});
  CHECK(airport.gate.deadlines[1] >= later(before, 20s));
  CHECK(airport.gate.deadlines[1] < later(before, 40s));
}

TEST_CASE("a leader that runs out of time hands the lead on") {
  Airport airport;
  airport.begin();
  airport.leave("brief", 300ms);
  eventually([&] { return airport.batcher.led(); }, 300ms);
  airport.leave("patient");
  CHECK_THROWS_AS(airport.answer(1), Failure);
  airport.leave("other");
  airport.gate.open();
  CHECK(airport.answer(2).find("patient") != std::string::npos);
  CHECK(airport.answer(3).find("other") != std::string::npos);
}

TEST_CASE("a turn without a connection takes nobody along") {
  Airport airport;
  airport.gate.opens = true;
  airport.begin();
  airport.queue({"a", "b"});
  airport.gate.open();
  CHECK(airport.answer(1) == "<a>");
  CHECK(airport.answer(2) == "<b>");
}

TEST_CASE("many threads get each their own answer") {
  Airport airport(8);
  in_parallel(16, [&](int i) {
    for (int round = 0; round < 100; ++round) {
      const auto name = std::to_string(i % 12) + "/" + std::to_string(round % 3);
      const auto answer = airport.batcher.send(name, in(1min));
      CHECK(answer.substr(1, answer.size() - 2) == name);
    }
  });
  CHECK(airport.batcher.queued() == 0);
  CHECK_FALSE(airport.batcher.led());
}

TEST_CASE("of a hundred who travel together each is woken, with its own answer") {
  Airport airport(128);
  airport.begin();
  for (int i = 0; i < 100; ++i) airport.leave("n" + std::to_string(i));
  REQUIRE(eventually([&] { return airport.batcher.queued() == 99; }));  // and one leads
  airport.gate.open();
  for (std::size_t i = 1; i <= 100; ++i) CHECK(airport.answer(i) == "[n" + std::to_string(i - 1) + "]");
  REQUIRE(airport.gate.flights.size() == 2);
  CHECK(airport.gate.flights[1].size() == 100);
}
