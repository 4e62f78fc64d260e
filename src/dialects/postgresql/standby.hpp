// Tells whether the standby that a commit waits for has confirmed it: where the wait is cancelled the commit succeeds,
// and only a warning says that a failover may forget it.
#pragma once

#include "types/failure.hpp"

#include <libpq-fe.h>

namespace dlock::dialects::postgresql {

// Whether the server says so here, in whatever language.
bool gave_up_on_standby(const PGresult* notice) noexcept;

// For what was committed without being confirmed: it may have to be asked again, by a commit that waits again.
Failure unconfirmed_commit();

// Listens to a caller's connection for as long as this lives, and passes on what it hears.
// Threads: the connection's. Owns: nothing.
class StandbyWatch {
 public:
  explicit StandbyWatch(PGconn* connection);
  ~StandbyWatch();
  StandbyWatch(const StandbyWatch&) = delete;
  StandbyWatch& operator=(const StandbyWatch&) = delete;

  bool gave_up() const noexcept { return gave_up_; }

 private:
  PGconn* const connection_;
  PQnoticeReceiver receiver_ = nullptr;  // the caller's; null: it has one of its own making, which is left alone
  bool gave_up_ = false;
};

}  // namespace dlock::dialects::postgresql
