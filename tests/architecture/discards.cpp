// Leaves every answer that must not be left: the compiler is to warn of each line that says so.
#include <dlock/dlock.hpp>

namespace {

void leave_everything(dlock::Engine& engine, dlock::TransactionRef transaction, const dlock::LockOptions& options) {
  engine.try_lock("name");                                               // left
  engine.try_lock_for("name", dlock::Duration{1});                       // left
  engine.lock("name");                                                   // left
  engine.lock(std::stop_token{}, "name");                                // left
  engine.try_lock_in(transaction, "name");                               // left
  engine.try_lock_in(transaction, "name", dlock::Duration{1}, options);  // left
  engine.wait_free("name", dlock::Duration{1});                          // left
  engine.adopt("name", dlock::Grant{});                                  // left
  engine.renew("name", dlock::Grant{});                                  // left
  engine.force_release("name", dlock::Token{1});                         // left
  engine.reap();
}

}  // namespace

void (*use)(dlock::Engine&, dlock::TransactionRef, const dlock::LockOptions&) = &leave_everything;
