// A deadline queue answers like a sorted list, whatever enters and leaves it in whatever order.
#include "engine/lease/deadline_queue.hpp"

#include "engine/lease/lease.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace dlock::engine;
using dlock::Instant;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<Lease> grant(int number) {
  return std::make_shared<Lease>(dlock::Name("n" + std::to_string(number)), "owner", dlock::Token{1},
                                 LeaseTerms{30s, 1s}, Instant{});
}

}  // namespace

TEST_CASE("the first of a deadline queue is the earliest of those that are in it") {
  constexpr int grants = 300, steps = 20'000;
  DeadlineQueue queue(DeadlineQueue::SortedBy::latest), other(DeadlineQueue::SortedBy::trust);
  std::vector<std::shared_ptr<Lease>> all;
  for (int i = 0; i < grants; ++i) all.push_back(grant(i));
  std::map<const Lease*, Instant> expected;
  std::mt19937 random{42};
  for (int step = 0; step < steps; ++step) {
    const auto& one = all[random() % all.size()];
    // In waves, so that it is empty and full again and again.
    if (random() % 100 < (step / 2000 % 2 == 0 ? 80U : 20U)) {
      const Instant at{std::chrono::nanoseconds{random() % 1000}};
      queue.put(one, at);
      other.put(one, Instant{} + (Instant{} - at));
      expected[one.get()] = at;
    } else {
      const bool there = expected.erase(one.get()) == 1;
      CHECK((queue.take(*one) == one) == there);
      CHECK((other.take(*one) == one) == there);
    }
    CHECK(queue.has(*one) == expected.contains(one.get()));
    CHECK(queue.empty() == expected.empty());
    auto first = Instant::max();
    for (const auto& [held, at] : expected) first = std::min(first, at);
    CHECK(queue.first() == first);
  }
  Instant last{};
  for (; !queue.empty(); expected.erase(queue.take(*queue.front()).get())) {
    CHECK(queue.first() >= last);
    last = queue.first();
    CHECK(expected.at(queue.front().get()) == last);
  }
  CHECK(expected.empty());
  CHECK(queue.first() == Instant::max());
}

TEST_CASE("a deadline queue shares what is in it, and lets go of what leaves") {
  DeadlineQueue queue(DeadlineQueue::SortedBy::earliest);
  auto one = grant(1);
  queue.put(one, Instant{});
  queue.put(one, Instant{} + 1s);
  CHECK(one.use_count() == 2);
  queue.take(*one);
  CHECK(one.use_count() == 1);
  CHECK_FALSE(queue.take(*one));
}
