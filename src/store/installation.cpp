// Reads which installation a lock table is.
#include "store/installation.hpp"

#include <utility>

namespace dlock::store {

Failure no_floor() {
  return {Cause::schema, "the floor row of the lock table is missing; run \"dlock-migrate repair\""};
}

Token floor_of(const Answer& answer) {
  if (answer.rows() == 0) throw no_floor();
  return Token{answer.integer(0, 0)};
}

Home::Home(const dialects::Statements& statements, OnConnection on_connection, std::string name, Duration patience)
    : statement_(statements.at("installation", {})),
      on_connection_(std::move(on_connection)),
      name_(std::move(name)),
      patience_(patience) {}

Installation Home::installation() const {
  const MutexLock guard(mutex_);
  return installation_;
}

void Home::read() {
  const auto deadline = soon();
  on_connection_(deadline, [&](dialects::Connection& connection, const Deadline&) {
    const auto& answer = connection.run(statement_, {}, deadline);
    if (answer.rows() == 0) throw no_floor();
    const MutexLock guard(mutex_);
    installation_ = {answer.text(0, 0), answer.text(0, 1)};
  });
}

void Home::end_session(std::string_view session) {
  const auto deadline = soon();
  on_connection_(deadline,
                 [&](dialects::Connection& connection, const Deadline&) { connection.end_session(session, deadline); });
}

}  // namespace dlock::store
