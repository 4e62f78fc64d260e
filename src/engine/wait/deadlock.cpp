// This file knows how a chain of waits is read.
#include "engine/wait/deadlock.hpp"

#include "engine/session_id.hpp"
#include "engine/wait/known_waiters.hpp"
#include "types/name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace dlock::engine {

std::optional<Cycle> cycle_of(std::vector<store::WaitEdge> chain, std::string_view actor) {
  // A chain of one: somebody waits for what it holds itself, through another engine; another thread may let go of it.
  if (chain.size() < 2 || job_of(actor).empty() || job_of(chain.back().holder_actor) != job_of(actor))
    return std::nullopt;
  return Cycle{std::move(chain)};
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
