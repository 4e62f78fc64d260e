// Tests that who waits misses nothing: who is about to sleep has looked after it asked to be woken, and a release in
// its own process wakes it.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "engine/lease_renewer_bench.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Core;
using dlock::Deadline;
using dlock::later;
using dlock::Name;
using dlock::Reentrance;
using dlock::Released;
using dlock::dialects::AwaitedLock;
using dlock::dialects::Notification;

namespace {

// A listener that hears when the test says so. Threads: any.
class FakeChannel {
 public:
  // Until somebody listens, and everything that it does before has been done; then notifies of the name, until that was
  // passed on, too.
  void notify(const std::string& name) {
    std::unique_lock guard(mutex_);
    pending_ = name;
    CHECK(changed_.wait_for(guard, far_longer(), [&] { return passed_on_; }));
  }

  std::unique_ptr<dlock::dialects::Listener> listener() { return std::make_unique<OneListener>(*this); }

 private:
  class OneListener final : public dlock::dialects::Listener {
   public:
    explicit OneListener(FakeChannel& channel) : channel_(channel) {}
    Notification wait(std::span<const AwaitedLock>, Deadline until) override { return channel_.wait(until); }
    void interrupt() noexcept override { channel_.interrupt(); }

   private:
    FakeChannel& channel_;
  };

  Notification wait(const Deadline& until) {
    std::unique_lock guard(mutex_);
    passed_on_ = notified_;
    changed_.notify_all();
    while (!interrupted_ && pending_.empty() && !until.passed()) changed_.wait_for(guard, 1ms);
    interrupted_ = false;
    if (pending_.empty()) return {};
    notified_ = true;
    return {false, {{std::exchange(pending_, {}), {}}}};
  }

  void interrupt() noexcept {
    const std::lock_guard guard(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  bool interrupted_ = false, notified_ = false, passed_on_ = false;
  std::string pending_;
};

// Two processes of one table. The waiter looks by itself once an hour, and marks the name twice: the first time it is
// notified, so that nothing that wakes it is under way any more when it marks the name again; right before that mark
// is on the row, the name is freed.
struct Bench {
  FakeChannel channel{};
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  Core holder{table, {.reentrance = Reentrance::none}};
  Core waiter{table, {.reentrance = Reentrance::none, .polling = {.first = 1h, .longest = 1h}}};
  std::atomic<int> marks{0};

  dlock::Token token{};

  // `frees`: as it is said above.
  explicit Bench(bool frees = true) {
    const auto held = holder.acquire(Name("n"), {.lease = 24h, .renew = false}, {});
    REQUIRE(held);
    token = held->token();
    table->make_listener = [this] { return channel.listener(); };
    if (!frees) return;
    table->waiting().on_want = [this](std::string_view name) {
      if (++marks == 1) {
        channel.notify("n");
        BootClock::ahead += std::chrono::nanoseconds{1min}.count();  // that mark is over, and the clock stays ahead
      } else if (marks == 2) {
        CHECK(table->force_release(name, token, {}, Deadline::max()));
      }
    };
  }
};

// What a call that waits answers; in vain it would wait for an hour, and is stopped.
template <class Call>
auto soon(Call call) {
  std::stop_source stop;
  auto answer = std::async(std::launch::async, [&] {
    return call(Core::Patience{later(BootClock::now(), 24h), stop.get_token(), true});
  });
  CHECK(answer.wait_for(far_longer()) == std::future_status::ready);
  stop.request_stop();
  return answer.get();
}

}  // namespace

TEST_CASE("what is freed while a waiter marks the name is granted to it at once") {
  Bench bench;
  const auto held =
      soon([&](const Core::Patience& patience) { return bench.waiter.acquire(Name("n"), {.renew = false}, patience); });
  CHECK(bench.marks == 2);
  REQUIRE(held);
  CHECK(bench.waiter.release(held, 1min) == Released::freed);
}

TEST_CASE("what is freed while somebody who waits for that marks the name is seen at once") {
  Bench bench;
  CHECK(soon([&](const Core::Patience& patience) { return bench.waiter.wait_free(Name("n"), patience); }));
  CHECK(bench.marks == 2);
}

TEST_CASE("a release in this process wakes the next thread, also where nothing is heard and nothing handed over") {
  const auto table = std::make_shared<FakeLockTable>();
  Core core{table,
            {.reentrance = Reentrance::none,
             .polling = {.first = 1h, .longest = 1h},
             .listen = false,
             .hand_overs = {.in_a_row = 0}}};
  const auto held = core.acquire(Name("n"), {.lease = 24h, .renew = false}, {});
  REQUIRE(held);
  const auto next = soon([&](const Core::Patience& patience) {
    // It looks once, and has seen by then that it has to wait.
    const std::jthread holder([&] {
      CHECK(reached([&] { return table->looks >= 1; }));
      CHECK(core.release(held, 1min) == Released::freed);
    });
    return core.acquire(Name("n"), {.renew = false}, patience);
  });
  REQUIRE(next);
  CHECK(core.release(next, 1min) == Released::freed);
}

// What the cheap ask does not grant says nothing of the row.
TEST_CASE("a wait that ends right after a release that it heard of asks once more, and not in the cheapest way alone") {
  std::atomic<int> cheap{0};
  for (auto patience = 500ms; cheap == 0; patience *= 2) {  // a slow machine may need longer to hear of it
    REQUIRE(patience < 1min);
    Bench bench(false);
    std::atomic<bool> unseen{false};
    bench.table->instead_of_acquiring = [&](const auto& ask) -> std::optional<dlock::store::Granted> {
      if (!ask.freed) return std::nullopt;
      if (++cheap == 1) bench.table->force_release("n", bench.token, {}, Deadline::max());
      unseen = true;
      return dlock::store::Granted{std::nullopt, true};
    };
    bench.table->before_looking = [&] {
      if (unseen) throw dlock::Failure(dlock::Cause::locked, "its table is locked just now");
    };
    bench.table->instead_of_blocked = [&]() -> std::optional<dlock::store::Blocked> {
      unseen = false;
      return dlock::store::Blocked{};
    };
    bench.table->waiting().on_want = [&](std::string_view) {
      if (++bench.marks == 1) bench.channel.notify("n");
    };
    const auto held = bench.waiter.acquire(Name("n"), {.renew = false}, {later(BootClock::now(), patience), {}, true});
    CHECK((cheap == 0 || held));
    if (held) CHECK(bench.waiter.release(held, 1min) == Released::freed);
  }
  CHECK(cheap == 1);
}

TEST_CASE("a mark that could not be written is tried again soon, however rarely its waiter looks") {
  for (const bool observes : {false, true}) {
    INFO("observes: " << observes);
    const auto table = std::make_shared<FakeLockTable>();
    std::atomic<int> tried{0};
    table->waiting().on_want = [&](std::string_view) {
      ++tried;
      throw dlock::Failure(dlock::Cause::locked, "planned");
    };
    dlock::EngineOptions rarely{.reentrance = Reentrance::none};
    rarely.polling.first = rarely.polling.longest = 1h;
    Core core{table, rarely};
    Core other{table, {.reentrance = Reentrance::none}};
    const auto theirs = other.acquire(Name("n"), {.lease = 1h}, {later(BootClock::now(), 1min), {}, false});
    REQUIRE(theirs);
    auto waiting = std::async(std::launch::async, [&] {
      const dlock::engine::Patience patience{later(BootClock::now(), far_longer()), {}, true};
      return observes ? core.wait_free(Name("n"), patience) : core.acquire(Name("n"), {}, patience) != nullptr;
    });
    CHECK(eventually([&] { return tried >= 6; }, 20s));  // at ordinary looks it would be three times by then
    other.release(theirs, 1s);
    CHECK(waiting.get());
  }
}
