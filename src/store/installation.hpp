// What a lock table knows of the database it is in, for comparing a caller's connection with it.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/statement.hpp"
#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/failure.hpp"
#include "types/row.hpp"

#include <dlock/duration.hpp>
#include <dlock/token.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace dlock::store {

struct Installation {
  std::string identity;  // of the floor row, as the statement "installation" tells it
  std::string place;     // what the database says of itself without reading a table; empty: nothing
};

// Threads: any. Fails: members throw Failure.
class Home {
 public:
  // Runs the work on a connection of the engine's own.
  using Work = std::function<void(dialects::Connection& connection, const Deadline& until)>;
  using OnConnection = std::function<void(Deadline deadline, const Work& work)>;

  // `name`: of the lock table, with the database it is in. `patience`: for each request.
  Home(const dialects::Statements& statements, OnConnection on_connection, std::string name, Duration patience);

  // As it was last read.
  Installation installation() const;
  // Reads it anew: the server may have been started again, or the floor row made anew.
  void read();
  const std::string& name() const noexcept { return name_; }

  // See dialects::EndSession.
  void end_session(std::string_view session);

 private:
  Deadline soon() const noexcept { return later(BootClock::now(), patience_); }

  const dialects::Statement& statement_;
  const OnConnection on_connection_;
  const std::string name_;
  const Duration patience_;
  mutable AnnotatedMutex mutex_;
  Installation installation_ GUARDED_BY(mutex_);
};

// The floor row is not there.
Failure no_floor();
// From the column of the statement "floor". Throws that Failure where there is no row.
Token floor_of(const Answer& answer);

}  // namespace dlock::store
