// When the thread of a worker begins and ends, and for how long what it shares with its owner is there.
#include "types/worker.hpp"

#include "support/eventually.hpp"
#include "support/exit_status.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Sleeps until it is asked to end, and never looks at a clock.
struct Sleeper : Worker {
  explicit Sleeper(Instant sleeps_until = Instant::max()) : until(sleeps_until) {}
  ~Sleeper() override {
    if (gone != nullptr) *gone = true;
  }
  void run() override {
    ++begun;
    UniqueMutexLock guard(mutex);
    while (!closing) wait(guard, until);
    over = true;
  }
  const Instant until;
  std::atomic<int> begun{0};
  std::atomic<bool> over{false};
  std::atomic<bool>* gone = nullptr;
};

// Does what the test says.
struct Acting : Sleeper {
  void run() override { act(); }
  std::function<void()> act;
};

auto threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

void start(Worker& worker) {
  const MutexLock guard(worker.mutex);
  worker.start();
}

}  // namespace

TEST_CASE("a worker has no thread before it is started, and one however often it is") {
  const auto before = threads();
  const auto worker = std::make_shared<Sleeper>();
  CHECK(threads() <= before);
  start(*worker);
  start(*worker);
  worker->finish();
  CHECK(worker->begun == 1);
}

TEST_CASE("a worker that was never started ends at once") {
  const auto worker = std::make_shared<Sleeper>();
  worker->finish();
  CHECK(worker->is_closing());
  CHECK(worker->begun == 0);
}

TEST_CASE("who sleeps for ever, or for hours, is woken when it is to end, and waited for") {
  for (const auto until : {Instant::max(), later(BootClock::now(), 10h)}) {
    const auto worker = std::make_shared<Sleeper>(until);
    start(*worker);
    REQUIRE(eventually([&] { return worker->begun == 1; }));
    worker->close();
    REQUIRE(eventually([&] { return worker->over.load(); }));
    worker->finish();
    // The thread's own share has gone with it.
    CHECK(worker.use_count() == 1);
  }
}

TEST_CASE("the end of a worker waits for what it is at") {
  const auto worker = std::make_shared<Acting>();
  std::atomic<bool> over{false};
  worker->act = [&, it = worker.get()] {
    while (!it->is_closing()) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);
    over = true;
  };
  start(*worker);
  worker->finish();
  CHECK(over);
}

TEST_CASE("the earliest end that is asked for is the one that counts") {
  const auto worker = std::make_shared<Sleeper>();
  const auto soon = later(BootClock::now(), 1s);
  worker->close(later(soon, 1h));
  worker->close(soon);
  worker->close();
  const MutexLock guard(worker->mutex);
  CHECK(worker->ends_by == soon);
}

TEST_CASE("what a worker and its owner share outlives an owner that ends on the worker's own thread") {
  std::atomic<bool> gone{false}, gone_too_early{true};
  auto owner = std::make_shared<Acting>();
  owner->gone = &gone;
  owner->act = [&] {
    owner->finish();
    owner.reset();
    gone_too_early = gone.load();
  };
  start(*owner);
  CHECK(eventually([&] { return gone.load(); }));
  CHECK_FALSE(gone_too_early);
}

TEST_CASE("a worker that has ended by itself begins anew, and not before the last one has gone") {
  const auto worker = std::make_shared<Acting>();
  std::atomic<bool> left{false}, let_go{false}, too_early{false};
  worker->act = [&, it = worker.get()] {
    if (++it->begun > 1) {
      too_early = !let_go;
      return;
    }
    {
      const MutexLock guard(it->mutex);
      it->running = false;
      left = true;
    }
    while (!let_go) std::this_thread::yield();
  };
  start(*worker);
  REQUIRE(eventually([&] { return left.load(); }));
  start(*worker);  // does not wait for it
  std::this_thread::sleep_for(20ms);
  CHECK(worker->begun == 1);
  let_go = true;
  worker->finish();
  CHECK(worker->begun == 2);
  CHECK_FALSE(too_early);
}

TEST_CASE("what does not end in time is left to itself, and waited for by nobody") {
  std::atomic<bool> gone{false}, let_go{false};
  {
    const auto worker = std::make_shared<Acting>();
    worker->gone = &gone;
    worker->act = [&] {
      while (!let_go) std::this_thread::yield();
    };
    start(*worker);
    worker->finish(later(BootClock::now(), 1ms));
    CHECK(worker->is_closing());
    worker->finish();  // nor by who comes later
  }
  CHECK_FALSE(gone);
  let_go = true;
  CHECK(eventually([&] { return gone.load(); }));
}

TEST_CASE("several wait for the same end") {
  const auto worker = std::make_shared<Acting>();
  std::atomic<bool> let_go{false}, over{false};
  std::atomic<int> waiting{0}, too_early{0};
  worker->act = [&] {
    while (!let_go) std::this_thread::yield();
    over = true;
  };
  start(*worker);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i)
      all.emplace_back([&] {
        ++waiting;
        worker->finish();
        if (!over) ++too_early;
      });
    REQUIRE(eventually([&] { return waiting == 4 && worker->is_closing(); }));
    let_go = true;
  }
  CHECK(too_early == 0);
}

TEST_CASE("a worker that throws has ended") {
  const auto worker = std::make_shared<Acting>();
  worker->act = [] { throw std::bad_alloc(); };
  start(*worker);
  worker->finish();
  CHECK(worker.use_count() == 1);
}

TEST_CASE("a worker knows its own thread, also when nobody waits for that any more") {
  const auto worker = std::make_shared<Acting>();
  std::atomic<bool> let_go{false}, here{false}, over{false};
  worker->act = [&, it = worker.get()] {
    while (!let_go) std::this_thread::yield();
    here = it->is_here();
    it->finish();
    over = true;
  };
  start(*worker);
  CHECK_FALSE(worker->is_here());
  worker->finish(BootClock::now());
  let_go = true;
  REQUIRE(eventually([&] { return over.load(); }));
  CHECK(here);
}

TEST_CASE("a worker that pauses is woken by its end, and by nothing else before its time") {
  const auto worker = std::make_shared<Acting>();
  std::atomic<int> pauses{0};
  std::atomic<bool> early{false};
  worker->act = [&, it = worker.get()] {
    const auto begun = BootClock::now();
    it->pause(5ms);
    early = BootClock::now() - begun < 5ms;
    ++pauses;
    it->pause(std::chrono::years{1000});
    ++pauses;
  };
  start(*worker);
  while (pauses == 0) worker->changed.notify_all();
  worker->finish();
  CHECK(pauses == 2);
  CHECK_FALSE(early);
}

TEST_CASE("a worker in the place of one whose thread has not gone yet is waited for all the same") {
  auto first = std::make_shared<Acting>();
  std::atomic<bool> let_go{false}, over{false}, waited{false};
  first->act = [&] {
    // Made in a callback, and ended with the thread.
    struct Last {
      ~Last() { work(); }
      std::function<void()> work;
    };
    thread_local Last last;
    last.work = [&] {
      const auto worker = std::make_shared<Acting>();  // likely where the first one was
      std::atomic<bool> done{false};
      worker->act = [&, it = worker.get()] {
        while (!it->is_closing()) std::this_thread::yield();
        done = true;
      };
      start(*worker);
      CHECK_FALSE(worker->is_here());
      worker->finish();
      waited = done.load();
      over = true;
    };
    while (!let_go) std::this_thread::yield();
  };
  start(*first);
  first->finish(BootClock::now());
  first.reset();
  let_go = true;
  REQUIRE(eventually([&] { return over.load(); }));
  CHECK(waited);
}

TEST_CASE("after fork() the child neither waits for the thread of its parent nor touches its mutex") {
  const auto worker = std::make_shared<Sleeper>();
  start(*worker);
  {
    const MutexLock guard(worker->mutex);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      worker->finish();
      ::_exit(worker->forked() ? 0 : 1);
    }
    CHECK(await_end(child) == 0);
  }
  CHECK_FALSE(worker->forked());
  worker->finish();
}
