// How a chain of waits is read.
#include "engine/wait/deadlock.hpp"

#include "engine/session_id.hpp"
#include "engine/wait/known_waiters.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace dlock::engine {

// Breadth first, in an order that is the same for all who look. A way of one: somebody waits for what it holds itself,
// through another engine; another thread may let go of it.
std::optional<Cycle> cycle_of(std::vector<store::WaitEdge> chain, std::string_view actor) {
  const auto job = job_of(actor);
  if (job.empty()) return std::nullopt;
  if (planted("shared_deadlock_unseen")) chain.resize(std::min<std::size_t>(chain.size(), 1));
  std::ranges::sort(chain, {},
                    [](const store::WaitEdge& edge) { return std::tie(edge.name, edge.waiter, edge.holder); });
  std::multimap<std::string_view, std::size_t> waits;  // by the job that waits
  for (std::size_t i = 0; i < chain.size(); ++i) waits.emplace(job_of(chain[i].waiter_actor), i);
  constexpr auto first = static_cast<std::size_t>(-1);
  std::vector<std::pair<std::size_t, std::size_t>> ways;  // an edge, and where in here the one before it is
  std::set<std::string_view> seen;
  const auto go_on = [&](std::string_view from, std::size_t before) {
    if (!seen.insert(from).second) return;
    for (auto [at, end] = waits.equal_range(from); at != end; ++at) ways.emplace_back(at->second, before);
  };
  go_on(job, first);
  for (std::size_t at = 0; at < ways.size(); ++at) {
    const auto holder = job_of(chain[ways[at].first].holder_actor);
    if (holder != job) {
      if (!holder.empty()) go_on(holder, at);
      continue;
    }
    if (ways[at].second == first) continue;
    Cycle cycle;
    for (auto step = at; step != first; step = ways[step].second) cycle.edges.push_back(chain[ways[step].first]);
    std::ranges::reverse(cycle.edges);
    return cycle;
  }
  return std::nullopt;
}

bool Cycle::same_as(const Cycle& other) const {
  return std::ranges::equal(edges, other.edges, [](const store::WaitEdge& a, const store::WaitEdge& b) {
    return std::tie(a.name, a.waiter, a.ticket, a.since, a.holder, a.token) ==
           std::tie(b.name, b.waiter, b.ticket, b.since, b.holder, b.token);
  });
}

int Cycle::younger_than(std::string_view waiter) const {
  const auto mine = std::ranges::find(edges, waiter, &store::WaitEdge::waiter);
  if (mine == edges.end()) return static_cast<int>(edges.size());
  return static_cast<int>(std::ranges::count_if(edges, [&](const store::WaitEdge& each) {
    return std::tie(each.since, each.waiter) > std::tie(mine->since, mine->waiter);
  }));
}

std::string Cycle::in_words() const {
  std::string words;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto& before = edges[(i + edges.size() - 1) % edges.size()];  // whose holder is who waits here
    words +=
        fmt::format("{}{} holds {}, waits for {} ({})", words.empty() ? "" : "; ", before.holder_label,
                    in_quotes(before.name), in_quotes(edges[i].name), known_of(edges[i].waiter, before.holder_actor));
  }
  return words;
}

}  // namespace dlock::engine
