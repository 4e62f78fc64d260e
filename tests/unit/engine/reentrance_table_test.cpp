// This file knows which grants can be entered again, by whom, when there are many.
#include "engine/lease/reentrance_table.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dlock::engine;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<Lease> grant(const std::string& name) {
  return std::make_shared<Lease>(dlock::Name(name), "owner", dlock::Token{1}, Lease::Terms{30s, 1s}, dlock::Instant{});
}

std::string name_of(int number) { return "name " + std::to_string(number); }

}  // namespace

TEST_CASE("each of many grants is entered under its own name, by its own thread, until it is left") {
  constexpr int grants = 500;
  ReentranceTable entries;
  std::vector<std::shared_ptr<Lease>> mine, theirs;
  for (int i = 0; i < grants; ++i) entries.open_to_this_thread(mine.emplace_back(grant(name_of(i))));
  std::jthread([&] {
    for (int i = 0; i < grants; ++i) {
      CHECK_FALSE(entries.enter(name_of(i)));
      entries.open_to_this_thread(theirs.emplace_back(grant(name_of(i))));
    }
  }).join();
  for (int i = 0; i < grants; ++i) CHECK(entries.enter(name_of(i)) == mine[static_cast<std::size_t>(i)]);
  for (int i = 0; i < grants; i += 2) {
    const auto& held = mine[static_cast<std::size_t>(i)];
    CHECK(entries.leave(held) == ReentranceTable::Rest::others);
    CHECK(entries.leave(held) == ReentranceTable::Rest::nothing);
    CHECK(held.use_count() == 1);
  }
  for (int i = 0; i < grants; ++i) CHECK((entries.enter(name_of(i)) != nullptr) == (i % 2 == 1));
}

TEST_CASE("a new grant takes the place of one that was lost, and who is inside of that stays so") {
  ReentranceTable entries;
  const auto lost = grant("name"), present = grant("name");
  entries.open_to_this_thread(lost);
  CHECK(entries.enter("name") == lost);
  entries.open_to_this_thread(present);
  CHECK(entries.enter("name") == present);
  CHECK(entries.leave(lost) == ReentranceTable::Rest::others);
  CHECK(entries.leave(lost) == ReentranceTable::Rest::nothing);
  CHECK(entries.enter("name") == present);
}

TEST_CASE("who leaves a grant that was detached is told so, and nobody enters it") {
  ReentranceTable entries;
  const auto held = grant("name");
  entries.open_to_this_thread(held);
  CHECK(entries.enter("name") == held);
  entries.detach(held);
  CHECK_FALSE(entries.enter("name"));
  CHECK(entries.leave(held) == ReentranceTable::Rest::detached);
  CHECK(entries.leave(held) == ReentranceTable::Rest::detached);
}
