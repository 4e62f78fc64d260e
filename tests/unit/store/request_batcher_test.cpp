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
  bool many = false;     // there are turns for everybody
  std::string silent{};  // whose answer does not come
  bool closed = false;   // nothing comes back
  int under_way = 0;
  std::vector<std::vector<std::string>> batches{};
  std::function<void(const std::vector<std::string>&)> on_batch = [](const auto&) {};  // may throw
  std::vector<Instant> deadlines{};                                                    // of each
  Pace pace{};
  bool opens = false;  // turns come without a connection

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
  bool sending(int least = 1) {
    const std::lock_guard guard(mutex);
    return under_way >= least;
  }
  std::size_t count() {
    const std::lock_guard guard(mutex);
    return batches.size();
  }
};

class GateLoan {
 public:
  GateLoan(Gate& gate, bool with_connection) : is_open(with_connection), gate_(&gate) {}
  GateLoan(GateLoan&& other) noexcept : is_open(other.is_open), gate_(std::exchange(other.gate_, nullptr)) {}
  GateLoan& operator=(GateLoan&&) = delete;
  ~GateLoan() {
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
struct EchoOperation {
  using View = std::string;
  using Kept = KeptText;
  using Result = std::string;
  using Loan = GateLoan;
  Gate* gate;

  static std::string_view name(const std::string& view) { return view; }
  static bool is_open(const Loan& loan) { return loan.is_open; }
  static Deadline promptly(const Loan&, Deadline deadline) { return deadline; }
  static Failure none_lent() { return {Cause::timed_out, "no turn in time"}; }
  static std::size_t kind(const std::string& view) { return view.front() >= 'A' && view.front() <= 'Z' ? 1 : 0; }
  Pace pace() const {
    const std::lock_guard guard(gate->mutex);
    return gate->pace;
  }
  static bool may_be_of_one(const std::string&, const Failure& failure) {
    return failure.cause() == Cause::locked || failure.cause() == Cause::rejected;
  }
  static bool leaves_open(const std::string& result) { return result == "<locked>"; }
  Loan borrow(Deadline deadline) const {
    std::unique_lock guard(gate->mutex);
    if (!gate->changed.wait_until(guard, deadline.at(), [&] { return !gate->taken || gate->many; }))
      throw Failure(Cause::timed_out, "no turn");
    gate->taken = true;
    return {*gate, !gate->opens};
  }
  void carry(const std::vector<std::string>& names, Deadline deadline) const {
    std::unique_lock guard(gate->mutex);
    gate->batches.push_back(names);
    gate->deadlines.push_back(deadline.at());
    ++gate->under_way;
    const bool back =
        gate->changed.wait_until(guard, deadline.at(), [&] { return !gate->closed && names.front() != gate->silent; });
    --gate->under_way;
    if (!back) throw Failure(Cause::timed_out, "no answer", {}, true);
    gate->on_batch(names);
  }
  std::string alone(const std::string& name, Loan loan, Deadline deadline) const {
    const Loan mine = std::move(loan);
    carry({name}, deadline);
    return "<" + name + ">";
  }
  std::vector<BatchResult<std::string>> together(std::span<const std::string> names, Loan loan,
                                                 Deadline deadline) const {
    const Loan mine = std::move(loan);
    carry({names.begin(), names.end()}, deadline);
    std::vector<BatchResult<std::string>> answers(names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i].starts_with("bad")) answers[i].failure = Failure(Cause::deadlock, "lost " + names[i]);
      else if (!names[i].starts_with("shy")) answers[i].result = "[" + names[i] + "]";
    return answers;
  }
};

struct GatedBatcher {
  Gate gate{};
  std::atomic<std::size_t> crowd{0};
  RequestBatcher<EchoOperation> batcher;
  std::vector<std::future<std::string>> answers{};

  explicit GatedBatcher(std::size_t most = 64) : batcher(EchoOperation{&gate}, most, crowd) {}

  // Takes the only turn, and keeps it under way.
  void begin(const std::string& name = "first", std::chrono::milliseconds patience = 1min) {
    gate.close();
    leave(name, patience);
    REQUIRE(eventually([&] { return gate.sending(); }));
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

using Batches = std::vector<std::vector<std::string>>;

}  // namespace

TEST_CASE("who has nobody before it leaves alone, at once") {
  GatedBatcher gated;
  CHECK(gated.batcher.send("a", in(1min)) == "<a>");
  CHECK(gated.batcher.send("b", in(1min)) == "<b>");
  CHECK(gated.gate.batches == Batches{{"a"}, {"b"}});
}

TEST_CASE("those that come while one is on its way leave together, in the order of names") {
  GatedBatcher gated;
  gated.begin();
  gated.queue({"m", "z", "a", "k"});
  gated.gate.open();
  CHECK(gated.answer(0) == "<first>");
  CHECK(gated.answer(1) == "[m]");
  CHECK(gated.answer(2) == "[z]");
  CHECK(gated.answer(3) == "[a]");
  CHECK(gated.answer(4) == "[k]");
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "k", "m", "z"}});
}

TEST_CASE("no more than the limit travel together, and the next of the rest leads") {
  GatedBatcher gated(3);
  gated.begin();
  gated.queue({"a", "b", "c", "d", "e", "f", "g"});
  gated.gate.open();
  for (std::size_t i = 1; i < gated.answers.size(); ++i) gated.answer(i);
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "b", "c"}, {"d", "e", "f"}, {"g"}});
}

TEST_CASE("what goes wrong with one of many is told that one alone") {
  GatedBatcher gated;
  gated.begin();
  gated.queue({"a", "bad", "z"});
  gated.gate.open();
  CHECK(gated.answer(1) == "[a]");
  CHECK_THROWS_AS(gated.answer(2), Failure);
  CHECK(gated.answer(3) == "[z]");
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "bad", "z"}});
}

TEST_CASE("a batch is of the leader's kind, and those of the other kind lead the next") {
  GatedBatcher gated;
  gated.begin();
  gated.queue({"a", "K", "b", "L"});
  gated.gate.open();
  for (std::size_t i = 1; i < gated.answers.size(); ++i) gated.answer(i);
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "b"}, {"K", "L"}});
}

TEST_CASE("where batches are slow they are of both kinds, and each kind has its own room, whoever leads") {
  struct Case {
    std::vector<std::string> queue;
    Batches batches;
  };
  const std::vector<Case> cases{
      Case{{"a", "b", "c", "K", "L", "M", "d"}, Batches{{"first"}, {"K", "L", "a", "b"}, {"M", "c", "d"}}},
      Case{{"K", "a", "b", "c", "L", "M", "N"}, Batches{{"first"}, {"K", "L", "a", "b"}, {"M", "N", "c"}}},
      Case{{"K", "a", "b"}, Batches{{"first"}, {"K", "a", "b"}}},
  };
  for (const auto& each : cases) {
    GatedBatcher gated(2);
    gated.gate.pace = {true, 0ms, 10s};
    gated.begin();
    gated.queue(each.queue);
    gated.gate.open();
    for (std::size_t i = 1; i < gated.answers.size(); ++i) CHECK(gated.answer(i) == "[" + each.queue[i - 1] + "]");
    CHECK(gated.gate.batches == each.batches);
  }
}

TEST_CASE("where batches are slow one leaves after the other, unless that one hangs") {
  GatedBatcher gated;
  gated.gate.many = true;
  gated.gate.pace = {true, 0ms, 1min};
  gated.begin();
  gated.queue({"a", "b"});
  CHECK(gated.gate.batches == Batches{{"first"}});  // though there is a turn to be had
  gated.gate.open();
  CHECK(gated.answer(1) == "[a]");
  CHECK(gated.answer(2) == "[b]");
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "b"}});

  gated.gate.change([&] { gated.gate.pace.hung = 50ms; });
  gated.gate.close();
  gated.leave("silent");
  REQUIRE(eventually([&] { return gated.gate.sending(); }));
  gated.leave("next", 10min);  // so that a quarter of that is no answer
  REQUIRE(eventually([&] { return gated.gate.sending(2); }));
  gated.gate.open();
  CHECK(gated.answer(3) == "<silent>");
  CHECK(gated.answer(4) == "<next>");
}

TEST_CASE("where batches are slow one that hangs is waited for once, and not by each that comes after it") {
  GatedBatcher gated;
  gated.gate.many = true;
  gated.gate.pace = {true, 0ms, 3s};
  gated.gate.silent = "silent";
  auto silent = std::async(std::launch::async, [&] { return gated.batcher.send("silent", in(10min)); });
  REQUIRE(eventually([&] { return gated.gate.sending(); }));
  CHECK(gated.batcher.send("first", in(10min)) == "<first>");
  const auto before = BootClock::now();
  for (int i = 0; i < 10; ++i) CHECK(gated.batcher.send("next", in(10min)) == "<next>");
  CHECK(BootClock::now() < later(before, 25s));
  // Nor by who waits for one of those.
  const auto then = BootClock::now();
  for (std::size_t round = 0; round < 6; ++round) {
    gated.gate.close();
    gated.leave("one");
    REQUIRE(eventually([&] { return gated.gate.sending(2); }));
    gated.leave("behind");
    REQUIRE(eventually([&] { return gated.batcher.led() || gated.gate.sending(3); }));
    gated.gate.open();
    CHECK(gated.answer(2 * round) == "<one>");
    CHECK(gated.answer(2 * round + 1) == "<behind>");
  }
  CHECK(BootClock::now() < later(then, 15s));
  gated.gate.change([&] { gated.gate.silent.clear(); });
  CHECK(silent.get() == "<silent>");
}

TEST_CASE(
    "where batches are slow who waits for two and hears of the later one waits for the other only as long as it had") {
  GatedBatcher gated(2);
  gated.gate.many = true;
  gated.gate.pace = {true, 0ms, 1min};
  gated.gate.silent = "silent";
  gated.leave("silent", 3min);
  REQUIRE(eventually([&] { return gated.gate.sending(); }));
  BootClock::ahead += std::chrono::nanoseconds{50s}.count();
  gated.gate.close();
  gated.queue({"a"});
  gated.leave("b");  // with whom as many are there as may leave, so that nobody is waited for
  REQUIRE(eventually([&] { return gated.gate.sending(2); }));
  gated.leave("behind", 10min);
  REQUIRE(eventually([&] { return gated.batcher.gathers(); }));
  BootClock::ahead += std::chrono::nanoseconds{9s}.count();
  gated.gate.open();
  CHECK(gated.answer(1) == "[a]");
  CHECK(eventually([&] { return gated.gate.count() == 3; }, 30s));  // and not after fifty
  gated.gate.change([&] { gated.gate.silent.clear(); });
  CHECK(gated.answer(3) == "<behind>");
  CHECK(gated.answer(0) == "<silent>");
}

TEST_CASE("where batches are slow nobody waits whose batch is full") {
  GatedBatcher gated(3);
  gated.gate.many = true;
  gated.gate.pace = {true, 1min, 1min};
  gated.begin();
  gated.queue({"a", "b"});
  CHECK(gated.gate.batches == Batches{{"first"}});
  gated.leave("c");
  REQUIRE(eventually([&] { return gated.gate.sending(2); }));
  gated.gate.open();
  for (std::size_t i = 1; i < gated.answers.size(); ++i) gated.answer(i);
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "b", "c"}});
}

TEST_CASE("where batches are slow a leader waits for those who have just had their answers") {
  GatedBatcher gated;
  gated.gate.pace = {true, 1min, 1min};
  CHECK(gated.crowd == 0);
  gated.begin();
  std::vector<std::string> all;
  for (char c = 'a'; c < 'a' + 8; ++c) all.emplace_back(1, c);
  gated.queue(all);
  gated.gate.open();
  for (std::size_t i = 1; i <= all.size(); ++i) gated.answer(i);
  CHECK(eventually([&] { return gated.crowd == all.size(); }));
  gated.leave("x0");
  for (int i = 1; i < 7; ++i) {  // seven of eight
    REQUIRE(eventually(
        [&] { return gated.batcher.gathers() && gated.batcher.queued() + 1 == static_cast<std::size_t>(i); }));
    CHECK(gated.gate.count() == 2);
    gated.leave("x" + std::to_string(i));
  }
  for (int i = 0; i < 7; ++i) gated.answer(all.size() + 1 + static_cast<std::size_t>(i));
  CHECK(gated.gate.batches.back().size() == 7);
  CHECK(eventually([&] { return gated.crowd == 7; }));
}

TEST_CASE("a leader waits for others no longer than it was told to, and for a while not at all where few came") {
  GatedBatcher gated;
  gated.gate.pace = {true, 1ms, 1min};
  gated.begin();
  std::vector<std::string> all;
  for (char c = 'a'; c < 'a' + 8; ++c) all.emplace_back(1, c);
  gated.queue(all);
  gated.gate.open();
  for (std::size_t i = 1; i <= all.size(); ++i) gated.answer(i);
  CHECK(gated.batcher.send("z", in(1min)) == "<z>");
  gated.gate.change([&] { gated.gate.pace.company = 1min; });
  gated.begin("again");
  gated.queue({"a", "b"});
  gated.gate.open();
  CHECK(gated.answer(gated.answers.size() - 1) == "[b]");
}

TEST_CASE("of one name only one travels at a time") {
  GatedBatcher gated;
  gated.begin();
  gated.queue({"a", "b", "a", "b", "c", "a"});
  gated.gate.open();
  for (std::size_t i = 1; i < gated.answers.size(); ++i) gated.answer(i);
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "b", "c"}, {"a", "b"}, {"a"}});
}

TEST_CASE("who cannot be answered among many is sent alone") {
  GatedBatcher gated;
  gated.begin();
  gated.queue({"a", "shy", "shyer", "z"});
  gated.gate.open();
  CHECK(gated.answer(1) == "[a]");
  CHECK(gated.answer(2) == "<shy>");
  CHECK(gated.answer(3) == "<shyer>");
  CHECK(gated.answer(4) == "[z]");
  GatedBatcher other;
  other.begin();
  other.queue({"shy", "b"});
  other.gate.open();
  CHECK(other.answer(1) == "<shy>");
  CHECK(other.answer(2) == "[b]");
}

TEST_CASE("a failure that may be of one makes each go alone, and only that one fails") {
  for (const auto cause : {Cause::rejected, Cause::locked}) {
    GatedBatcher gated;
    gated.gate.on_batch = [&](const auto& names) {
      for (const auto& name : names)
        if (name == "bad") throw Failure(cause, "a bad name");
    };
    gated.begin();
    gated.queue({"a", "bad", "c"});
    gated.gate.open();
    CHECK(gated.answer(1) == "<a>");
    CHECK_THROWS_AS(gated.answer(2), Failure);
    CHECK(gated.answer(3) == "<c>");
  }
}

TEST_CASE("a failure of all reaches each as it is") {
  GatedBatcher gated;
  gated.gate.on_batch = [](const auto& names) {
    if (names.size() > 1) throw Failure(Cause::disconnected, "cut", "08006", true);
  };
  gated.begin();
  gated.queue({"a", "b", "c"});
  gated.gate.open();
  for (std::size_t i = 1; i < gated.answers.size(); ++i) {
    try {
      gated.answer(i);
      FAIL_CHECK("it failed");
    } catch (const Failure& failure) {
      CHECK(failure.cause() == Cause::disconnected);
      CHECK(failure.what() == std::string("cut"));
      CHECK(failure.code() == "08006");
      CHECK(failure.may_have_run());
    }
  }
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "b", "c"}});
}

TEST_CASE("who is sent alone since a packet of its batch failed is never told that nothing was done by another one") {
  GatedBatcher gated;
  bool alone_fails = false;
  gated.gate.on_batch = [&](const auto& names) {
    if (names.size() > 1) throw Failure(Cause::rejected, "one of many", "22001", true);
    if (alone_fails && names.front() != "first") throw Failure(Cause::disconnected, "not sent");
  };
  for (const bool fails : {false, true}) {
    alone_fails = fails;
    const auto before = gated.answers.size();
    gated.begin();
    gated.queue({"a", "locked", "c"});
    gated.gate.open();
    std::set<std::string> told;
    for (std::size_t i = before + 1; i < gated.answers.size(); ++i) {
      try {
        told.insert(gated.answer(i));
      } catch (const Failure& failure) {
        CHECK(failure.may_have_run());
        told.insert(failure.cause() == Cause::locked ? "locked, in doubt" : failure.what());
      }
    }
    CHECK(told ==
          (fails ? std::set<std::string>{"not sent"} : std::set<std::string>{"<a>", "<c>", "locked, in doubt"}));
    gated.answer(before);
  }
}

TEST_CASE("who is queued goes by its own deadline, and has not been sent") {
  GatedBatcher gated;
  gated.begin();
  gated.queue({"front"});
  const auto begin = BootClock::now();
  try {
    gated.batcher.send("hasty", later(begin, 30ms));
    FAIL_CHECK("nobody took it along");
  } catch (const Failure& failure) {
    CHECK(failure.cause() == Cause::timed_out);
    CHECK_FALSE(failure.may_have_run());
  }
  CHECK(BootClock::now() >= later(begin, 30ms));
  CHECK(gated.batcher.queued() == 0);
  gated.gate.open();
  CHECK(gated.answer(1) == "<front>");
}

TEST_CASE("who was taken along goes by its own deadline, and may have been sent") {
  bool taken_along = false;
  for (auto patience = 500ms; !taken_along; patience *= 2) {  // a slow machine may need longer to take it along
    REQUIRE(patience < 1min);
    GatedBatcher gated;
    gated.gate.on_batch = [&](const auto& names) {
      if (names.front() == "first") gated.gate.closed = true;  // for those after it
    };
    gated.begin();
    gated.leave("front", patience);
    eventually([&] { return gated.batcher.led(); }, patience);
    const auto deadline = in(patience * 9 / 10);
    auto hasty = std::async(std::launch::async, [&] { return gated.batcher.send("hasty", deadline); });
    eventually([&] { return gated.batcher.queued() == 1; }, patience);
    gated.gate.open();
    CHECK(gated.answer(0) == "<first>");
    try {
      hasty.get();
      FAIL_CHECK("nothing came back");
    } catch (const Failure& failure) {
      CHECK(failure.cause() == Cause::timed_out);
      taken_along = failure.may_have_run();
    }
    CHECK(BootClock::now() >= deadline.at());
    CHECK_THROWS_AS(gated.answer(1), Failure);
  }
}

TEST_CASE("who has much less time than the leader leads the next") {
  GatedBatcher gated;
  gated.begin();
  gated.queue({"patient"});
  gated.leave("hasty", 20s);
  REQUIRE(eventually([&] { return gated.batcher.queued() == 1; }));
  gated.gate.open();
  CHECK(gated.answer(1) == "<patient>");
  CHECK(gated.answer(2) == "<hasty>");
  CHECK(gated.gate.batches == Batches{{"first"}, {"patient"}, {"hasty"}});
}

TEST_CASE("who is of another kind may have much less time than the leader") {
  GatedBatcher gated;
  gated.gate.pace = {true, 0ms, 10s};
  gated.begin();
  gated.queue({"patient"});
  const auto before = BootClock::now();
  gated.leave("K", 20s);
  REQUIRE(eventually([&] { return gated.batcher.queued() == 1; }));
  gated.leave("HASTY", 5s);
  REQUIRE(eventually([&] { return gated.batcher.queued() == 2; }));
  gated.gate.open();
  CHECK(gated.answer(1) == "[patient]");
  CHECK(gated.answer(2) == "[K]");
  CHECK(gated.answer(3) == "<HASTY>");
  CHECK(gated.gate.batches == Batches{{"first"}, {"K", "patient"}, {"HASTY"}});
  CHECK(gated.gate.deadlines[1] > later(before, 30s));  // the leader's: each of the others goes by its own
}

TEST_CASE("who may be told to stop leads nobody of another kind, who would lose its answer by that") {
  GatedBatcher gated;
  gated.gate.pace = {true, 0ms, 10s};
  gated.begin();
  std::stop_source stop;
  const Deadline stoppable(in(1min).at(), stop.get_token());
  auto leader = std::async(std::launch::async, [&] { return gated.batcher.send("a", stoppable); });
  REQUIRE(eventually([&] { return gated.batcher.led(); }));
  for (const char* name : {"b", "K"}) {
    gated.leave(name);
    REQUIRE(eventually([&] { return gated.batcher.queued() == gated.answers.size() - 1; }));
  }
  gated.gate.open();
  CHECK(leader.get() == "[a]");
  for (std::size_t i = 1; i < gated.answers.size(); ++i) gated.answer(i);
  CHECK(gated.gate.batches == Batches{{"first"}, {"a", "b"}, {"K"}});
}

TEST_CASE("a leader that runs out of time hands the lead on") {
  GatedBatcher gated;
  gated.begin();
  gated.leave("brief", 300ms);
  eventually([&] { return gated.batcher.led(); }, 300ms);
  gated.leave("patient");
  CHECK_THROWS_AS(gated.answer(1), Failure);
  gated.leave("other");
  gated.gate.open();
  CHECK(gated.answer(2).find("patient") != std::string::npos);
  CHECK(gated.answer(3).find("other") != std::string::npos);
}

TEST_CASE("a turn without a connection takes nobody along") {
  GatedBatcher gated;
  gated.gate.opens = true;
  gated.begin();
  gated.queue({"a", "b"});
  gated.gate.open();
  CHECK(gated.answer(1) == "<a>");
  CHECK(gated.answer(2) == "<b>");
}

TEST_CASE("many threads get each their own answer") {
  GatedBatcher gated(8);
  in_parallel(16, [&](int i) {
    for (int round = 0; round < 100; ++round) {
      const auto name = std::to_string(i % 12) + "/" + std::to_string(round % 3);
      const auto answer = gated.batcher.send(name, in(1min));
      CHECK(answer.substr(1, answer.size() - 2) == name);
    }
  });
  CHECK(gated.batcher.queued() == 0);
  CHECK_FALSE(gated.batcher.led());
}

TEST_CASE("of a hundred who travel together each is woken, with its own answer") {
  GatedBatcher gated(128);
  gated.begin();
  for (int i = 0; i < 100; ++i) gated.leave("n" + std::to_string(i));
  REQUIRE(eventually([&] { return gated.batcher.queued() == 99; }));  // and one leads
  const auto before = BootClock::now();
  gated.gate.open();
  for (std::size_t i = 1; i <= 100; ++i) CHECK(gated.answer(i) == "[n" + std::to_string(i - 1) + "]");
  CHECK(BootClock::now() < later(before, 50s));  // and not when their time was up
  REQUIRE(gated.gate.batches.size() == 2);
  CHECK(gated.gate.batches[1].size() == 100);
}
