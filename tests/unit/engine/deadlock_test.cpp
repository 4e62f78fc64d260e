// When a chain of waits is a deadlock, and who gives way.
#include "engine/wait/deadlock.hpp"

#include "engine/wait/known_waiters.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <unistd.h>

#include <string>

using dlock::Token;
using dlock::engine::cycle_of;
using dlock::store::WaitEdge;

namespace {

std::string actor(char engine, char job) { return std::string(16, engine) + std::string(16, job); }

WaitEdge edge(const std::string& name, const std::string& waiter, std::int64_t since, const std::string& holder,
              char job, const std::string& label) {
  WaitEdge edge;
  edge.name = name;
  edge.waiter = waiter;
  edge.waiter_actor = actor('e', waiter.front());
  edge.since = since;
  edge.holder = holder;
  edge.holder_actor = actor('e', job);
  edge.holder_label = label;
  edge.token = Token{7};
  return edge;
}

// a waits for y, which b holds; b waits for x, which a holds.
std::vector<WaitEdge> two() { return {edge("y", "a1", 10, "b2", 'b', "B"), edge("x", "b1", 20, "a2", 'a', "A")}; }

}  // namespace

TEST_CASE("a chain that comes back to its beginning is a deadlock, whatever the engine its job asks through") {
  CHECK(cycle_of(two(), actor('e', 'a')));
  CHECK(cycle_of(two(), actor('f', 'a')));
  CHECK_FALSE(cycle_of(two(), actor('e', 'c')));
  CHECK_FALSE(cycle_of({}, actor('e', 'a')));
  CHECK_FALSE(cycle_of(two(), ""));
}

TEST_CASE("among several who hold a name the one is found that waits in turn, by the shortest way") {
  std::vector<WaitEdge> edges{edge("y", "a1", 10, "c2", 'c', "C"), edge("y", "a1", 10, "b2", 'b', "B"),
                              edge("z", "c1", 15, "d2", 'd', "D"), edge("x", "d1", 16, "a2", 'a', "A")};
  CHECK(cycle_of(edges, actor('e', 'a'))->edges.size() == 3);
  edges.push_back(edge("x", "b1", 20, "a2", 'a', "A"));
  const auto cycle = cycle_of(edges, actor('e', 'a'));
  REQUIRE(cycle);
  CHECK(cycle->edges.size() == 2);
  CHECK(cycle->edges.front().holder == "b2");
  edges.resize(2);
  CHECK_FALSE(cycle_of(edges, actor('e', 'a')));
}

TEST_CASE("others who wait for each other end nothing of who waits for one of them") {
  const std::vector<WaitEdge> edges{edge("y", "a1", 10, "b2", 'b', "B"), edge("z", "b1", 15, "c2", 'c', "C"),
                                    edge("y", "c1", 16, "b2", 'b', "B")};
  CHECK_FALSE(cycle_of(edges, actor('e', 'a')));
}

TEST_CASE("who waits for what it holds itself is in no deadlock with another") {
  CHECK_FALSE(cycle_of({edge("x", "a1", 10, "a2", 'a', "A")}, actor('e', 'a')));
}

TEST_CASE("exactly one waiter of a cycle is the youngest, also among those who came at the same moment") {
  auto edges = two();
  const auto cycle = *cycle_of(edges, actor('e', 'a'));
  CHECK(cycle.younger_than("b1") == 0);
  CHECK(cycle.younger_than("a1") == 1);
  edges[0].since = edges[1].since;
  const auto tie = *cycle_of(edges, actor('e', 'a'));
  CHECK(tie.younger_than("b1") + tie.younger_than("a1") == 1);
}

TEST_CASE("a cycle is the same only if every wait and every grant in it is") {
  const auto cycle = *cycle_of(two(), actor('e', 'a'));
  CHECK(cycle.same_as(*cycle_of(two(), actor('e', 'a'))));
  auto moved = two();
  moved[1].token = Token{8};
  CHECK_FALSE(cycle.same_as(*cycle_of(moved, actor('e', 'a'))));
  auto again = two();
  again[0].since = 11;
  CHECK_FALSE(cycle.same_as(*cycle_of(again, actor('e', 'a'))));
}

TEST_CASE("a cycle is told with who holds and who waits") {
  CHECK(cycle_of(two(), actor('e', 'a'))->in_words() ==
        R"(A holds "x", waits for "y" (job aaaaaaaaaaaaaaaa of another process); )"
        R"(B holds "y", waits for "x" (job bbbbbbbbbbbbbbbb of another process))");
}

TEST_CASE("of those who wait in this process the text of a deadlock tells job, thread and process") {
  const auto here = fmt::format("thread {} of process {}", ::gettid(), ::getpid());
  const auto words = [] { return cycle_of(two(), actor('e', 'a'))->in_words(); };
  {
    dlock::engine::KnownWaiter first, second;
    first.waits_as("a1", "order 1");
    second.waits_as("b1", {});
    CHECK(words() ==
          fmt::format(R"(A holds "x", waits for "y" (job "order 1", {0}); B holds "y", waits for "x" ({0}))", here));
    first.waits_as("a2", "order 1");
    CHECK(words().find("order 1") == std::string::npos);
    first.waits_without_thread("a1", "order 1");
    CHECK(words().find(fmt::format(R"(waits for "y" (job "order 1" of process {}))", ::getpid())) != std::string::npos);
  }
  CHECK(words().find(here) == std::string::npos);
}
