// This file knows how the graph of those who wait is drawn.
#pragma once

#include <dlock/waiter.hpp>

#include <string>
#include <vector>

namespace dlock::tools {

class Json;

// A line for each waiter: who, for what, held by whom; and a line for each deadlock.
std::string as_text(const std::vector<Waiter>& waiters);

// A digraph in the language of Graphviz: from who waits to who holds, labelled with the name.
std::string as_dot(const std::vector<Waiter>& waiters);

Json as_json(const Waiter& waiter);

// "web1:4711 waits for "x" in turn (ticket 3) for 2.1s"
std::string in_words(const Waiter& waiter);

// The shell pattern that only this name matches.
std::string exactly(const std::string& name);

}  // namespace dlock::tools
