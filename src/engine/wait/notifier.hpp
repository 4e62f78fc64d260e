// Listens for all who wait, keeps their rows alive, and clears away after them, on one thread.
#pragma once

#include "engine/event_queue.hpp"
#include "engine/wait/wait_queues.hpp"
#include "store/lock_table.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::engine {

// How long a row that is only there for people lives without being renewed.
constexpr Duration row_for_people = std::chrono::seconds{60};

// How it is to work. Threads: as a value.
struct NotifierOptions {
  bool listen = true;
  Duration ticket{};  // how long a row in the waiters' table lives without being renewed
  Duration request_timeout{};
};

// Threads: any. Its thread, and the connection it listens on, are there while something waits, and a little longer.
// A missed notification costs time, never correctness: every waiter looks by itself at intervals.
class Notifier {
 public:
  Notifier(std::shared_ptr<store::LockTable> table, std::shared_ptr<EventQueue> events,
           std::shared_ptr<WaitQueues> queues, NotifierOptions options);
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Somebody waits, or waits for something else.
  void attend() noexcept;
  // Starts the thread if it could not be started when it was needed. False: just now, or still not.
  bool ensure_running() noexcept;
  // Takes a row out of the waiters' table, when there is time for it. `doubtful`: it may be committed only later, so
  // that it is not seen yet, and is looked for some times more, until all ends.
  void remove_later(std::string_view name, std::string_view owner, bool doubtful = false) noexcept;
  // Likewise the mark that a name is wanted, unless somebody here waits for it by then.
  void unwant_later(std::string_view name) noexcept;
  // Says that the end is near: no further statement begins, but for rows to be removed until
  // then.
  void close(Instant until = Instant::max()) noexcept;

 private:
  struct State;
  void clear_later(std::string_view name, std::optional<std::string_view> owner, Duration in = {}) noexcept;
  const std::shared_ptr<State> state_;
};

}  // namespace dlock::engine
