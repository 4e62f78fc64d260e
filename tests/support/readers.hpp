// Those who read a name, as tests have them: apart from each other, and looked at behind the engine's back.
#pragma once

#include "support/database.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::test::readers {

inline const LockOptions reading{.mode = Mode::shared};

// Who asks is nobody's thread.
inline Engine apart(Database& database) {
  return database.engine({.reentrance = Reentrance::none, .polling = {.longest = std::chrono::milliseconds{50}}});
}

inline long long holders(Database& database, std::string_view name = "a") {
  return database.admin().number("SELECT count(*) FROM resource_lock_holder WHERE name = '" + std::string(name) + "'");
}

inline void expire_one(Database& database, const Lock& lock) {
  database.admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at WHERE owner = '" + lock.owner() + "'");
}

inline std::optional<Lock> read_in(Engine& engine) {
  return answered([&] { return engine.try_lock_for("a", far_longer(), reading); });
}

}  // namespace dlock::test::readers
