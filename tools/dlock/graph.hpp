// How the graph of those who wait is drawn.
#pragma once

#include <dlock/waiter.hpp>

#include <map>
#include <string>
#include <vector>

namespace dlock::tools {

class Json;

// Those who wait; and of the names they wait for that several hold, who those are.
struct WaitGraph {
  WaitGraph(std::vector<Waiter> all_waiters, std::vector<Sharer> all_sharers);
  // Who holds what it waits for; empty: one alone, or nobody.
  const std::vector<Sharer>& together(const Waiter& waiter) const;

  std::vector<Waiter> waiters;
  std::map<std::string, std::vector<Sharer>> sharers;  // by name
};

// A line for each waiter: who, for what, held by whom; and a line for each deadlock.
std::string as_text(const WaitGraph& graph);

// A digraph in the language of Graphviz: from who waits to who holds, labelled with the name; where several hold it, to
// the name, and from there to each of them.
std::string as_dot(const WaitGraph& graph);

// The waiters, and the holders of names that several hold.
Json as_json(const WaitGraph& graph);
Json as_json(const Sharer& sharer);
Json as_json(const Waiter& waiter);

// "web1:4711 waits for "x" in turn (ticket 3) for 2.1s"
std::string in_words(const Waiter& waiter);

// The shell pattern that only this name matches.
std::string exactly(const std::string& name);

}  // namespace dlock::tools
