// The promise that a loss is told first and by itself: no callback of the program delays it, or anything else.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// A callback that blocks until the test lets it go on. It may outlive the test case.
class Blocker {
 public:
  std::function<void()> callback() const {
    return [state = state_] {
      ++state->entered;
      eventually([&] { return state->open.load(); }, 120s);
      ++state->left;
    };
  }
  bool entered(int times = 1) const {
    return eventually([&] { return state_->entered.load() >= times; });
  }
  int times() const { return state_->entered.load(); }
  void open() {
    state_->open = true;
    eventually([&] { return state_->left.load() == state_->entered.load(); });
  }
  ~Blocker() { open(); }

 private:
  struct State {
    std::atomic<bool> open{false};
    std::atomic<int> entered{0}, left{0};
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Short, so that its next renewal is soon.
Duration lease() { return 2500ms * slowness(); }

using Callback = std::stop_callback<std::function<void()>>;

}  // namespace

TEST_CASE("lost() is told although the observer blocks for ever") {
  Database database;
  Blocker blocker;
  auto engine = database.engine({.observer = [call = blocker.callback()](const Event&) { call(); }});
  auto lock = engine.try_lock("job", {.lease = lease()});
  REQUIRE(lock);
  REQUIRE(blocker.entered());
  std::atomic<bool> told{false};
  const Callback callback(lock->lost(), [&] { told = true; });
  free_by_force(engine, "job");
  CHECK(eventually([&] { return told.load(); }));
  CHECK(lock->lost().stop_requested());
  CHECK((lock->loss() == Loss::forced || lock->loss() == Loss::refused));  // it knows why for a second
  blocker.open();
}

TEST_CASE("callbacks that block for ever delay neither the losses of others, nor renewals, nor the observer's news") {
  Database database;
  constexpr int blocking = 3;
  Blocker blocker;
  EventLog news;
  auto engine = database.engine({.observer = news.observer()});
  const auto name = [](int i) { return "job " + std::to_string(i); };
  std::vector<std::optional<Lock>> locks(blocking);
  std::vector<std::unique_ptr<Callback>> callbacks;
  for (int i = 0; i < blocking; ++i) {
    auto& lock = locks[static_cast<std::size_t>(i)];
    lock = engine.try_lock(name(i), {.lease = lease()});
    REQUIRE(lock);
    callbacks.push_back(std::make_unique<Callback>(lock->lost(), blocker.callback()));
  }
  auto last = engine.try_lock("last", {.lease = lease()});
  auto renewed = engine.try_lock("renewed", {.lease = lease()});
  REQUIRE(last);
  REQUIRE(renewed);
  std::atomic<bool> told{false};
  const Callback callback(last->lost(), [&] { told = true; });

  for (int i = 0; i < blocking; ++i) free_by_force(engine, name(i));
  REQUIRE(blocker.entered(blocking));  // each of them, while the others block
  free_by_force(engine, "last");
  CHECK(eventually([&] { return told.load(); }));
  const auto begun = database.admin().expires_at("renewed");
  CHECK(eventually([&] { return database.admin().expires_at("renewed") > begun + lease(); }));
  CHECK(renewed->valid());
  CHECK(eventually([&] { return news.of(Event::Kind::lost).size() == blocking + 1; }));
  blocker.open();
}

TEST_CASE("an engine ends in time although its observer and a callback on a loss block, and calls neither again") {
  Database database;
  Blocker observer, loss;
  const auto request = 700ms * slowness();
  std::optional<Engine> engine = database.engine(
      {.timeouts = {.request = request}, .observer = [call = observer.callback()](const Event&) { call(); }});
  auto lock = engine->try_lock("job", {.lease = lease()});
  auto other = engine->try_lock("other");
  REQUIRE(lock);
  REQUIRE(other);
  const Callback callback(lock->lost(), loss.callback());
  free_by_force(*engine, "job");
  REQUIRE(observer.entered());
  REQUIRE(loss.entered());
  CHECK(other->release() == Released::freed);
  lock.reset();
  other.reset();
  const Stopwatch end;
  engine.reset();
  CHECK(end.elapsed() < request + 2s * slowness());
  observer.open();  // more than one piece of news was waiting
  loss.open();
  CHECK(observer.times() == 1);
}
