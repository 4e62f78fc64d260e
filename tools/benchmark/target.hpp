// This file knows the database that is measured, and what all scenarios ask of it.
#pragma once

#include <dlock/engine.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct Target {
  std::string url, table = "resource_lock";
};

// How the engines of a benchmark are opened.
dlock::EngineOptions engine_options(const Target& target);

// The lock, which nobody else may hold.
dlock::Lock take(dlock::Engine& locks, std::string_view name);

// Releases it; throws unless the database said so.
void give_back(dlock::Lock&& lock);

// Settings of the server that forget.
std::vector<std::string> weaknesses(const Target& target);

}  // namespace bench
