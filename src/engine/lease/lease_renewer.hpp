// Keeps leases alive: one thread, all leases that are due in one statement.
#pragma once

#include "engine/event_queue.hpp"
#include "engine/lease/lease.hpp"
#include "engine/lease/leftovers.hpp"
#include "store/lock_table.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::engine {

class WaitQueues;

// Threads: any. Its thread starts with the first lease to renew, or before it.
class LeaseRenewer {
 public:
  LeaseRenewer(std::shared_ptr<store::LockTable> table, std::shared_ptr<EventQueue> events,
               std::shared_ptr<WaitQueues> queues, Duration request_timeout);
  ~LeaseRenewer();  // ends renewing; does not release; waits for the statement that is under way
  LeaseRenewer(const LeaseRenewer&) = delete;
  LeaseRenewer& operator=(const LeaseRenewer&) = delete;

  // Throws std::system_error where the system has no thread to give.
  void start();

  // Renews the lease past a third of its length, again and again, until it is lost or removed, if it is to be
  // renewed. Again, after its length was changed: by the new one.
  void add(const std::shared_ptr<Lease>& held);
  void remove(const std::shared_ptr<Lease>& held);

  // Stops renewing this lease, and no other, until resume(); calls are counted, and each needs its resume(), whatever
  // it answered. Waits until no renewal of it is on its way any more. False: one was until `deadline`.
  bool pause(const std::shared_ptr<Lease>& held, Instant deadline);
  void resume(const std::shared_ptr<Lease>& held) noexcept;

  // Says that the end is near: no further statement begins, but for what was given up to be freed until then.
  void close(Instant until = Instant::max()) noexcept;

  // Frees it, as soon and as often as there is something to free: it is looked for at ever longer intervals, so that it
  // holds the name for no longer than a fraction of the time by which it is late.
  void free_later(Leftover leftover);
  // Whether there are any of that name; costs nothing while there are none at all.
  bool has_leftovers(std::string_view name) const;
  // The one that holds a name under this owner and token. Empty: it is held by somebody.
  std::optional<Leftover> leftover(std::string_view name, std::string_view owner, Token token) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dlock::engine
