// What a client is told to do, and the engines that its threads share.
#pragma once

#include <dlock/engine.hpp>
#include <dlock/lock.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlock::test {

struct Orders {
  std::string url, begin, id;
  std::size_t place = 0;  // among the clients of a run, from 0 on; a process that comes for another has its place
  Duration lease{};
  bool fenced = true;
  std::vector<std::string> names;
};

// The engines of a process: one that locks, and another that adopts what the first has held. Every other process of a
// run lets what it releases linger, and one of four passes nothing on in memory and lets no requests share a statement.
// Threads: any.
class Engines {
 public:
  explicit Engines(const Orders& orders) : orders_(orders) {}

  Engine& first() { return opened(first_, true); }
  Engine& other() { return opened(other_, false); }

  // Of those who let it linger one may have most of it.
  bool likes_lone_till() const;
  // Notes that statements have carried several requests since it was last called.
  void count_batches();
  // Whether more tokens of its row are kept here.
  bool keeps_row_of(const Lock& lock);

 private:
  Engine& opened(std::optional<Engine>& engine, bool first);
  EngineOptions options(bool first) const;

  const Orders& orders_;
  std::mutex mutex_;
  std::uint64_t batches_ = 0;
  std::optional<Engine> first_, other_;
};

}  // namespace dlock::test
