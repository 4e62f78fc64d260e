// The database that is measured, and what all scenarios ask of it.
#pragma once

#include "tools/benchmark/peers/raw_peer.hpp"

#include <dlock/engine.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct Target {
  std::string url, schema, table = "resource_lock", history_table;
  dlock::Duration connect_timeout = std::chrono::seconds{10};
  bool quiet = false;  // no progress line
};

// How the engines of a benchmark are opened.
dlock::EngineOptions engine_options(const Target& target);

// One connection of a peer.
std::unique_ptr<RawPeer> raw_peer(const Target& target, std::string_view word = "raw");

// The lock, which nobody else may hold.
dlock::Lock take(dlock::Engine& locks, std::string_view name);

// Releases it; throws unless the database said so.
void give_back(dlock::Lock&& lock);

// What a result must be read with.
struct Setup {
  std::string database;                 // product and version
  Settings settings;                    // that decide whether a commit survives a crash
  std::vector<std::string> weaknesses;  // of them: those that forget
  bool durable() const noexcept { return weaknesses.empty(); }
};
Setup setup_of(const Target& target);

}  // namespace bench
