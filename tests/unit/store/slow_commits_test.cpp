// The promise that releases and acquires share a commit where commits are slow, and nowhere else.
#include "store/slow_commits.hpp"

#include <doctest/doctest.h>

#include <chrono>

using dlock::store::SlowCommits;
using namespace std::chrono_literals;

TEST_CASE("commits are slow where the quickest of the last few batches took more than its names take") {
  SlowCommits commits;
  CHECK_FALSE(commits.pace().shared);  // nobody knows
  commits.wrote(3ms, 20);
  CHECK(commits.pace().shared);
  commits.wrote(1300us, 20);  // 400 of them the names'
  CHECK_FALSE(commits.pace().shared);
  for (int i = 0; i < 7; ++i) commits.wrote(5ms, 64);
  CHECK_FALSE(commits.pace().shared);
  commits.wrote(5ms, 64);
  CHECK(commits.pace().shared);
  commits.wrote(10us, 64);  // less than nothing
  CHECK_FALSE(commits.pace().shared);
}

TEST_CASE("after a shared commit that was undone each kind goes by itself for a while") {
  SlowCommits commits;
  commits.wrote(3ms, 1);
  for (int round = 0; round < 3; ++round) {
    CHECK(commits.pace().shared);
    commits.undone();
    for (int i = 0; i < 64; ++i) {
      CHECK_FALSE(commits.pace().shared);
      commits.wrote(3ms, 1);
    }
  }
  CHECK(commits.pace().shared);
  commits.never();
  for (int i = 0; i < 1000; ++i) commits.wrote(3ms, 1);
  CHECK_FALSE(commits.pace().shared);
}

TEST_CASE("where most names are used once each kind goes by itself, and not where a few of them are new") {
  SlowCommits commits;
  commits.wrote(3ms, 1);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) commits.saves_none();
    CHECK(commits.pace().shared);
    commits.saved();
  }
  for (int i = 0; i < 4; ++i) commits.saves_none();
  CHECK_FALSE(commits.pace().shared);
}

TEST_CASE("after a pause it takes as many batches of new names as before to begin another one") {
  struct Case {
    int in_vain;  // batches, before the pause
    bool undone;  // by a commit that was undone, and not by those
    int stragglers;
  };
  for (const auto& each : {Case{4, false, 0}, Case{3, true, 0}, Case{4, false, 3}, Case{0, true, 3}}) {
    SlowCommits commits;
    commits.wrote(3ms, 1);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < each.in_vain; ++i) commits.saves_none();
      if (each.undone) commits.undone();
      for (int i = 0; i < each.stragglers; ++i) commits.saves_none();  // left before the pause
      for (int i = 0; i < 64; ++i) {
        CHECK_FALSE(commits.pace().shared);
        commits.wrote(3ms, 1);
      }
      for (int i = 0; i < 3; ++i) {
        CHECK(commits.pace().shared);
        commits.saves_none();
      }
      CHECK(commits.pace().shared);
      commits.saved();
    }
  }
}
