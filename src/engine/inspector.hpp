// What is told of locks to who does not ask for one.
#pragma once

#include "engine/context.hpp"

#include <dlock/engine.hpp>
#include <dlock/stats.hpp>
#include <dlock/waiter.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dlock::engine {

// Threads: any. Changes nothing.
class Inspector {
 public:
  explicit Inspector(Context& context) noexcept : context_(context) {}

  std::optional<Holder> inspect(const Name& name, const std::stop_token& stop = {});
  // The same, where it comes soon; empty as well if it does not.
  std::optional<Holder> glance(const Name& name);
  std::vector<Holder> list(const std::string& glob);
  std::vector<HistoryEntry> history(const Name& name, std::size_t limit);
  std::vector<Waiter> waiters(const std::string& glob);
  std::vector<Sharer> sharers(const std::string& glob);
  Stats stats() const;

 private:
  Context& context_;
};

}  // namespace dlock::engine
