// What an engine tells its observer.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/export.hpp>
#include <dlock/token.hpp>

#include <string_view>

namespace dlock {
inline namespace v0 {

// One thing that happened. The views live as long as the call of the observer.
struct Event {
  enum class Kind {
    granted,    // a lease was granted; `took` is the time from the call to the grant
    released,   // a lease was released, or ends by itself because the release could not be confirmed (`text` says so)
    lost,       // a held lease is lost; `text` says how it was noticed
    trust_low,  // renewal keeps failing, or has ended for max_hold, and trust is running out; or the lease is too short
                // to be renewed at this distance from the database; `took` is what is left
    retried,    // a statement of the engine failed in passing and is sent again; `text` is the database's own
    abandoned,  // the reaper found a lease that expired without release; `text` says who held it
    reconnected,      // a connection was opened again after a failure
    weak_durability,  // the server is set to forget, or a failover would: `text` says which setting and what it costs;
                      // told at the start, and after a reconnect what is new
    busy,             // one who does not wait was told that the lock is another's; `took` is the time that it took
    timed_out,        // a wait ended on its deadline, without the lock; `took` is how long it was
    renewed_late,  // a lease was renewed long after it was due: 1/8 of its length or more; `took` is the time since the
                   // request was sent that had renewed it before
    deadlock,      // a wait was ended to break a cycle of waiters; `text` names them, `took` is how long it was
  };
  Kind kind{};
  std::string_view name{};
  std::string_view text{};
  Token token{};
  Duration took{};
  // Of whom it is: LockOptions::label, or else EngineOptions::label; EngineOptions::node; the name of its
  // job, if there is one.
  std::string_view label{};
  std::string_view node{};
  std::string_view job{};
};

// The kind's name, as in the enumeration.
DLOCK_EXPORT std::string_view to_string(Event::Kind kind) noexcept;

}  // namespace v0
}  // namespace dlock
