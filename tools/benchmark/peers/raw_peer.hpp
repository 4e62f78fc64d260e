// What dlock-bench compares the engine with: other locks of the same database, each of statements that
// are prepared once on one connection and sent by the plain blocking calls of the client library, with nothing around
// them; and what it asks a database about itself. It is no part of the library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

// What a database has done so far, for everybody, and how many it serves.
struct Load {
  std::optional<std::int64_t> statements{};  // transactions, where only those are counted; empty: nothing is
  std::int64_t bytes_written = 0;            // to its log
  std::int64_t connections = 0;              // this one too
};

// Names of settings, and what they are.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Where the lock table is.
struct RawTable {
  std::string schema{};  // empty: the connection's default
  std::string name = "resource_lock";
};

// Threads: one at a time. Fails: std::runtime_error.
class RawPeer {
 public:
  virtual ~RawPeer() = default;
  // The token, or 0 for busy. A lease of 30 s, where the lock has a lease.
  virtual std::int64_t acquire(std::string_view name, std::string_view owner) = 0;
  virtual void release(std::string_view name, std::string_view owner, std::int64_t token) = 0;
  // Reads the row of a name by its primary key, and nothing else.
  virtual void read(std::string_view name) = 0;

  // Product and version.
  virtual std::string server() const = 0;
  // Those that decide whether a commit survives a crash.
  virtual Settings settings() = 0;
  virtual Load load() = 0;
  // Where the database's log ends: two answers are the same unless something was written between them.
  virtual std::int64_t end_of_log() = 0;
  // Whether their difference is all that was written between them: not where the log begins anew when it is full.
  virtual bool counts_all_of_log() const { return true; }

  // Writes `count` rows, 10,000 at most, that have been idle for ever, named `prefix` and nine digits, from `first` on.
  virtual void fill(std::string_view prefix, std::int64_t first, std::int64_t count) = 0;
  // What a database does with a table by itself some time after many rows were written, now.
  virtual void tidy() = 0;
};

// Which peers there are for a URL: "raw" (our statements), "naive" (an upsert without what makes ours correct under
// tickets, floors and locked rows), and the database's own locks. Throws Error{misuse} for an unknown scheme.
std::span<const std::string_view> raw_peers(std::string_view url);

// One of those. Throws Error{misuse} for an unknown scheme, std::runtime_error where it cannot connect.
std::unique_ptr<RawPeer> raw_peer(std::string_view url, const RawTable& table, std::string_view word = "raw");

}  // namespace bench
