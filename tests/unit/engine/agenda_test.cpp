// This file knows that an agenda answers like a sorted list, whatever enters and leaves it in whatever order.
#include "engine/agenda.hpp"

#include "engine/held.hpp"

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

std::shared_ptr<Held> grant(int number) {
  return std::make_shared<Held>(dlock::Name("n" + std::to_string(number)), "owner", dlock::Token{1}, Held::Terms{30s, 1s},
                                Instant{});
}

}  // namespace

TEST_CASE("the first of an agenda is the earliest of those that are in it") {
  constexpr int grants = 300, steps = 20'000;
  Agenda agenda(Agenda::Kind::latest), other(Agenda::Kind::trust);
  std::vector<std::shared_ptr<Held>> all;
  for (int i = 0; i < grants; ++i) all.push_back(grant(i));
  std::map<const Held*, Instant> expected;
  std::mt19937 random{42};
  for (int step = 0; step < steps; ++step) {
    const auto& one = all[random() % all.size()];
    // In waves, so that it is empty and full again and again.
    if (random() % 100 < (step / 2000 % 2 == 0 ? 80U : 20U)) {
      const Instant at{std::chrono::nanoseconds{random() % 1000}};
      agenda.put(one, at);
      other.put(one, Instant{} + (Instant{} - at));
      expected[one.get()] = at;
    } else {
      const bool there = expected.erase(one.get()) == 1;
      CHECK((agenda.take(*one) == one) == there);
      CHECK((other.take(*one) == one) == there);
    }
    CHECK(agenda.has(*one) == expected.contains(one.get()));
    CHECK(agenda.empty() == expected.empty());
    auto first = Instant::max();
    for (const auto& [held, at] : expected) first = std::min(first, at);
    CHECK(agenda.first() == first);
  }
  Instant last{};
  for (; !agenda.empty(); expected.erase(agenda.take(*agenda.front()).get())) {
    CHECK(agenda.first() >= last);
    last = agenda.first();
    CHECK(expected.at(agenda.front().get()) == last);
  }
  CHECK(expected.empty());
  CHECK(agenda.first() == Instant::max());
}

TEST_CASE("an agenda shares what is in it, and lets go of what leaves") {
  Agenda agenda(Agenda::Kind::earliest);
  auto one = grant(1);
  agenda.put(one, Instant{});
  agenda.put(one, Instant{} + 1s);
  CHECK(one.use_count() == 2);
  agenda.take(*one);
  CHECK(one.use_count() == 1);
  CHECK_FALSE(agenda.take(*one));
}
