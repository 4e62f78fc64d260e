// How a test makes a lock wanted, frees it, and listens for that.
#pragma once

#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "types/owner.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace dlock::test {

inline Deadline soon(std::chrono::milliseconds length) { return later(BootClock::now(), length); }

// An engine, as far as listeners know one.
class NotifyingHolder {
 public:
  explicit NotifyingHolder(Database& database) : database_(database), table_(open_table(database.url(), 2, engine_)) {}

  std::string actor() const { return engine_ + "0123456789abcdef"; }
  store::LockTable& table() { return *table_; }
  void close() { table_.reset(); }

  // Takes a lock, and frees it; whoever waits for it has said so before.
  void take_and_free(const std::string& name) {
    const auto owner = random_identity(), who = actor();
    const Name checked(name);
    const store::AcquireRequest ask{checked, owner, "node", "label", who, std::chrono::minutes{1}, {}, ""};
    const auto granted = table_->acquire(ask, soon());
    const store::LeaseKey claim{checked.text(), owner, granted.token.value()};
    if (!patiently([&] { return bool(table_->release(claim, soon())); })) throw std::runtime_error("not freed");
  }
  // Until somebody has heard it.
  template <class Heard>
  bool take_and_free_until(const std::string& name, Heard heard) {
    return eventually([&] {
      take_and_free(name);
      return heard();
    });
  }

 private:
  Database& database_;
  const std::string engine_ = random_identity().substr(0, 16);
  std::unique_ptr<store::LockTable> table_;
};

// Makes a row that is wanted from now on.
inline void make_wanted(Database& database, const std::string& name) {
  auto table = database.table();
  table->make(name, soon());
  if (!database.admin().exists(name)) {
    auto engine = database.engine();
    engine.try_lock(name).reset();
  }
  database.admin().run("UPDATE resource_lock SET wanted_until = 9000000000000000 WHERE name = '" + name + "'");
}

// A listener, where there is one on this database.
inline std::unique_ptr<dialects::Listener> listener_of(Database& database) {
  return database.table()->open_listener(soon());
}

inline bool heard(const dialects::Notification& notification, const std::string& name) {
  return notification.everything || std::any_of(notification.names.begin(), notification.names.end(),
                                                [&](const auto& one) { return one.name == name; });
}

}  // namespace dlock::test
