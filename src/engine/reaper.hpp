// How the table is kept clean: abandoned leases are settled, and rows that nobody uses are removed.
//
// Removing takes two steps, so that tokens never fall: the floor is raised to the largest token of what is to go, and
// not before the grace has passed, by this process's own clock, rows whose token is not above that floor are removed.
// Nothing about the first step is stored: a process may remove what lies below any floor that it has itself seen a
// grace ago, whoever raised it, as long as it is there still: a floor that was taken back (a restore, a failover)
// begins anew, and the statement that removes goes by the floor that it reads. A stored time would be the database's,
// and would make the grace as long as that clock says.
#pragma once

#include "engine/event_queue.hpp"
#include "store/lock_table.hpp"

#include <dlock/engine.hpp>
#include <dlock/reaping.hpp>

#include <memory>
#include <stop_token>
#include <string>

namespace dlock::engine {

// How it is to work. Threads: as a value.
struct ReaperOptions {
  Duration every{};  // 0: only when asked
  Duration retention{}, grace{}, request_timeout{};
  std::string label{};
  std::size_t history = 0;  // rows to keep; 0: the history is left alone
};

// Of all engines on a table one reaps at a time: its turn is a lease on the floor row. That saves work and is not
// needed for safety: each removal and each settling is guarded by what was seen of its row.
// Threads: any. Its thread starts at once if it is to work by itself. Fails: Failure.
class Reaper {
 public:
  Reaper(std::shared_ptr<store::LockTable> table, std::shared_ptr<EventQueue> events, ReaperOptions options);
  ~Reaper();  // does not begin another statement; one under way ends within its time
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Says that the end is near: no further statement begins, but for the end of a turn until then.
  void close(Instant until = Instant::max()) noexcept;

  Engine::Reaped round(std::size_t batch);
  Engine::Reaped pass(const Reaping& reaping, const std::stop_token& stop);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dlock::engine
