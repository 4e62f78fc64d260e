// This file knows what dlock-bench compares the engine with: the same statements, prepared once on one connection and
// sent by the plain blocking calls of the client library, with nothing around them; and where it reads a database's
// counters. It is no part of the library.
#pragma once

#include "dialects/statement.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::dialects {

// What a database has done so far, for everybody, and how many it serves.
struct Load {
  std::optional<std::int64_t> statements{};  // transactions, where only those are counted; empty: nothing is
  std::int64_t bytes_written = 0;            // to its log
  std::int64_t connections = 0;              // this one too
};

// Threads: one at a time. Fails: std::runtime_error.
class RawPeer {
 public:
  virtual ~RawPeer() = default;
  // The token, or 0 for busy. A lease of 30 s.
  virtual std::int64_t acquire(std::string_view name, std::string_view owner) = 0;
  virtual void release(std::string_view name, std::string_view owner, std::int64_t token) = 0;
  // Product and version.
  virtual std::string server() const = 0;
  virtual Load load() = 0;
};

// The peer for a URL, on a table in the connection's default schema. Throws Error{misuse} for an unknown scheme.
std::unique_ptr<RawPeer> raw_peer(std::string_view url, const std::string& table);

}  // namespace dlock::dialects
