// Who writes to a file of SQLite next, of one process.
#include "dialects/sqlite/write_queue.hpp"

#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

using namespace dlock;
using namespace dlock::dialects::sqlite;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

struct Files {
  const fs::path folder = [] {
    std::string name = (fs::temp_directory_path() / "dlock-unit-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    return fs::path(name);
  }();
  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() { fs::remove_all(folder); }

  std::string make(const char* name) const {
    std::ofstream(folder / name) << "a database";
    return (folder / name).string();
  }
};

Deadline in(Duration time) { return later(BootClock::now(), time); }

}  // namespace

TEST_CASE("connections to one file have one queue, by whatever path they came") {
  const Files files;
  const auto path = files.make("a.db");
  const auto queue = WriteQueue::of(path);
  fs::create_symlink(path, files.folder / "link.db");
  fs::create_hard_link(path, files.folder / "hard.db");
  CHECK(WriteQueue::of((files.folder / "link.db").string()) == queue);
  CHECK(WriteQueue::of((files.folder / "hard.db").string()) == queue);
  CHECK(WriteQueue::of(files.make("b.db")) != queue);
  SUBCASE("another file at its path has another") {
    fs::rename(files.make("c.db"), path);
    CHECK(WriteQueue::of(path) != queue);
  }
  SUBCASE("a file that is not there has none with anybody") {
    fs::remove(path);
    CHECK(WriteQueue::of(path) != WriteQueue::of(path));
  }
  SUBCASE("a child made by fork() has its own, whoever has the parent's turn") {
    const BusyPatience patience(in(20s));
    const WriteQueue::Turn turn(*queue, patience);
    const pid_t child = ::fork();
    if (child == 0) {
      const BusyPatience brief(in(0s));
      const auto own = WriteQueue::of(path);
      // Who has the turn is not asked for its patience.
      const WriteQueue::Turn first(*own, brief);
      ::_exit(own != queue ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE("who waits to write comes before who has written just now") {
  const auto queue = std::make_shared<WriteQueue>();
  constexpr int rounds = 50;
  std::atomic<bool> asks{false}, over{false};
  std::atomic<int> others{0};
  std::thread other([&] {
    while (!over) {
      const BusyPatience patience(in(20s));
      asks = true;
      const WriteQueue::Turn turn(*queue, patience);
      asks = false;
      ++others;
    }
  });
  int passed_over = 0, before = -1;
  for (int round = 0; round < rounds; ++round) {
    const BusyPatience patience(in(20s));
    const WriteQueue::Turn turn(*queue, patience);
    passed_over += others == before ? 1 : 0;
    before = others;
    while (!asks) std::this_thread::yield();
    std::this_thread::sleep_for(1ms);  // it has asked, but for a thread that was held up in between
    CHECK(others == before);           // nobody else writes meanwhile
  }
  over = true;
  other.join();
  CHECK(passed_over <= rounds / 4);  // whoever comes first: nearly always the one who has just been
}

TEST_CASE("who has no time to wait, or is told to end, goes on without the turn") {
  const auto queue = std::make_shared<WriteQueue>();
  const BusyPatience long_one(in(60s));
  auto turn = std::make_unique<WriteQueue::Turn>(*queue, long_one);
  SUBCASE("its deadline passes") {
    const auto begun = BootClock::now();
    const BusyPatience brief(in(50ms));
    const WriteQueue::Turn none(*queue, brief);
    CHECK(BootClock::now() - begun >= 50ms);
  }
  SUBCASE("it is interrupted by another thread") {
    BusyPatience interrupted(in(60s));
    std::atomic<bool> ended{false};
    std::thread waits([&] {
      const WriteQueue::Turn none(*queue, interrupted);
      ended = true;
    });
    std::this_thread::sleep_for(5ms);
    CHECK_FALSE(ended);
    interrupted.lose();
    waits.join();
  }
  // Whoever left the queue does not get the turn, and the next one does.
  std::atomic<bool> next{false};
  std::thread waits([&] {
    const BusyPatience patience(in(60s));
    const WriteQueue::Turn mine(*queue, patience);
    next = true;
  });
  std::this_thread::sleep_for(5ms);
  CHECK_FALSE(next);
  turn.reset();
  waits.join();
  CHECK(next);
}
