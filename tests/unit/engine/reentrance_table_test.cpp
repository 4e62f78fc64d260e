// Which grants can be entered again, by whom, when there are many.
#include "engine/lease/reentrance_table.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace dlock::engine;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<Lease> grant(const std::string& name) {
  return std::make_shared<Lease>(dlock::Name(name), "owner", dlock::Token{1}, LeaseTerms{30s, 1s}, dlock::Instant{});
}

// By the calling thread, or by a job.
std::shared_ptr<Lease> enter(ReentranceTable& entries, const std::string& name, std::string_view job = {}) {
  return entries.enter(Entrant(job), name);
}

std::string name_of(int number) { return "name " + std::to_string(number); }

}  // namespace

TEST_CASE("each of many grants is entered under its own name, by its own thread, until it is left") {
  constexpr int grants = 500;
  ReentranceTable entries;
  std::vector<std::shared_ptr<Lease>> mine, theirs;
  for (int i = 0; i < grants; ++i) entries.open(mine.emplace_back(grant(name_of(i))));
  std::jthread([&] {
    for (int i = 0; i < grants; ++i) {
      CHECK_FALSE(enter(entries, name_of(i)));
      entries.open(theirs.emplace_back(grant(name_of(i))));
    }
  }).join();
  for (int i = 0; i < grants; ++i) CHECK(enter(entries, name_of(i)) == mine[static_cast<std::size_t>(i)]);
  for (int i = 0; i < grants; i += 2) {
    const auto& held = mine[static_cast<std::size_t>(i)];
    CHECK(entries.leave(held) == ReentranceTable::Rest::others);
    CHECK(entries.leave(held) == ReentranceTable::Rest::nothing);
    CHECK(held.use_count() == 1);
  }
  for (int i = 0; i < grants; ++i) CHECK((enter(entries, name_of(i)) != nullptr) == (i % 2 == 1));
}

TEST_CASE("a job enters what was granted to it, on any thread; its threads and other jobs do not") {
  ReentranceTable entries;
  const auto of_thread = grant("name"), of_job = grant("name"), of_other = grant("name");
  dlock::LockOptions options;
  options.job = "order 1";
  of_job->say(options);
  options.job = "order 2";
  of_other->say(options);
  entries.open(of_thread);
  CHECK_FALSE(enter(entries, "name", "order 1"));
  entries.open(of_job);
  entries.open(of_other);
  CHECK(enter(entries, "name") == of_thread);
  std::jthread([&] {
    CHECK_FALSE(enter(entries, "name"));
    CHECK(enter(entries, "name", "order 1") == of_job);
    CHECK(enter(entries, "name", "order 2") == of_other);
  }).join();
  CHECK(entries.of_this_thread() == std::vector{of_thread});
  CHECK(entries.leave(of_job) == ReentranceTable::Rest::others);
  CHECK(entries.leave(of_job) == ReentranceTable::Rest::nothing);
  CHECK_FALSE(enter(entries, "name", "order 1"));
  CHECK(enter(entries, "name", "order 2") == of_other);
}

TEST_CASE("a new grant takes the place of one that was lost, and who is inside of that stays so") {
  ReentranceTable entries;
  const auto lost = grant("name"), present = grant("name");
  entries.open(lost);
  CHECK(enter(entries, "name") == lost);
  entries.open(present);
  CHECK(enter(entries, "name") == present);
  CHECK(entries.leave(lost) == ReentranceTable::Rest::others);
  CHECK(entries.leave(lost) == ReentranceTable::Rest::nothing);
  CHECK(enter(entries, "name") == present);
}

TEST_CASE("who leaves a grant that was detached is told so, and nobody enters it") {
  ReentranceTable entries;
  const auto held = grant("name");
  entries.open(held);
  CHECK(enter(entries, "name") == held);
  entries.detach(held);
  CHECK_FALSE(enter(entries, "name"));
  CHECK(entries.leave(held) == ReentranceTable::Rest::detached);
  CHECK(entries.leave(held) == ReentranceTable::Rest::detached);
}
