// The leases that nobody holds any more, and that stay in their rows for a while for who comes next in this
// process.
#pragma once

#include "engine/lease/lease.hpp"
#include "engine/wait/wait_queues.hpp"
#include "store/lock_table.hpp"
#include "types/clock.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::engine {

// The table is asked every few milliseconds whether somebody else wants one of them: that one is freed at once, and its
// name does not linger again for a while. So is what has lingered for its time, or is not to be trusted for much
// longer. Threads: any. Its thread is there while something lingers. Allocates and may block for a moment; asks nothing
// on the caller's thread.
class LingeringLeases {
 public:
  LingeringLeases(std::shared_ptr<store::LockTable> table, std::shared_ptr<WaitQueues> queues, Duration linger,
                  Duration request_timeout);
  ~LingeringLeases();  // after close()
  LingeringLeases(const LingeringLeases&) = delete;
  LingeringLeases& operator=(const LingeringLeases&) = delete;

  // Whether a lease of that name may stay: there is room, a thread, and nobody else has wanted it lately.
  bool welcome(const std::string& name) noexcept;
  // Whether what is let go of may go on in memory: its row was looked at a moment ago, and nobody wanted it.
  bool goes_on(const Lease& held) noexcept;
  // Keeps it until somebody takes it. `written`: its row was, just now. False: it is to be freed.
  bool keep(const std::shared_ptr<Lease>& idle, bool written);

  // Whether one lingers that take() would answer.
  bool lingers(const std::string& name) const noexcept;

  struct Taken {
    std::shared_ptr<Lease> lease{};  // empty: none lingers
    bool fresh = false;              // nobody else wanted it a moment ago, and its trust is good for some time
  };
  // For who is granted it next, or frees it.
  Taken take(const std::string& name) noexcept;
  // It does not go on in memory.
  void forget(const std::string& name) noexcept;
  // All that lingers, for who frees it.
  std::vector<std::shared_ptr<Lease>> take_all();

  // For so long after its row was written it may go on in memory: then it is not due to be renewed.
  static Duration longest(const LeaseTerms& terms) noexcept;

  // Says that the end is near: what lingers is freed until then.
  void close(Instant until = Instant::max()) noexcept;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dlock::engine
