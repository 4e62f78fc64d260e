// What a test case stands on: a database with the table in it, and nothing held when the case ends.
#pragma once

#include "store/lock_table.hpp"
#include "support/admin.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"
#include "support/test_database.hpp"
#include "support/words.hpp"

#include <dlock/dlock.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::test {

// Declare it before engines and locks: its destructor proves that no lock is left held.
class Database {
 public:
  Database() : Database(opener().test_database()) {}
  explicit Database(std::unique_ptr<TestDatabase> test_database);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  std::string url() const { return test_database_->url(); }
  TestDatabase& test_database() { return *test_database_; }
  Admin& admin() { return *admin_; }
  // Where the options leave it open, requests and tickets have more time in proportion to slowness(), and with
  // DLOCK_TEST_COMBINE in the environment that many requests travel together, with DLOCK_TEST_LOCAL a lock goes on in
  // memory for so many milliseconds.
  Engine engine(const EngineOptions& options = {}) const;

  // The room below the engine, for promises about statements.
  std::unique_ptr<store::LockTable> table() const;

 private:
  const std::unique_ptr<TestDatabase> test_database_;
  std::unique_ptr<Admin> admin_;
};

// For tries that a transaction is in the way of: where it locks the whole database, they take all of that time.
std::chrono::milliseconds time_in_vain();

// The same on a server.
class ServerDatabase {
 public:
  ServerDatabase() : ServerDatabase(opener().server_database()) {}
  explicit ServerDatabase(std::unique_ptr<ServerTestDatabase> test_database)
      : server_(*test_database), database_(std::move(test_database)) {
    server_.await_peers();
  }

  ServerTestDatabase& server() { return server_; }
  Database* operator->() { return &database_; }
  Database& operator*() { return database_; }

 private:
  ServerTestDatabase& server_;
  Database database_;
};

// The room below the engine, behind any URL.
// `engine`: see store::TableOptions; `prepared`: see EngineOptions::prepared_statements.
std::unique_ptr<store::LockTable> open_table(const std::string& url, unsigned connections = 2,
                                             const std::string& engine = {}, bool prepared = true);

// A lease that no busy machine loses, and whose next renewal comes soon.
LockOptions renewed_often();

// What a short wait answers. Its last look at the database may have 50 ms, and its first connection 250: too little on
// a busy machine, and then once more.
template <class Wait>
auto answered(Wait wait) {
  for (const auto give_up = std::chrono::steady_clock::now() + far_longer();;) try {
      return wait();
    } catch (const Error& error) {
      const bool late =
          error.fault() == Fault::timeout || error.fault() == Fault::unavailable || error.fault() == Fault::in_doubt;
      if (!late || slowness() == 1 || std::chrono::steady_clock::now() > give_up) throw;
    }
}

// Whether `call` was granted nothing: an attempt whose answer was lost is made again, since in a crowd one may come too
// late. Where a transaction locks the whole database nobody can see what for, and is told by a timeout.
template <class Call>
bool granted_nothing(Call call) {
  try {
    return opener().server_database != nullptr ? !answered(call) : !call();
  } catch (const Error& error) {
    if (error.fault() != Fault::timeout) throw;
    return true;
  }
}

// Frees a lock that a test has left held on purpose.
void free_by_force(Engine& engine, std::string_view name);

// The fault of the dlock::Error that `call` throws, and its text; other exceptions pass.
struct Thrown {
  std::optional<Fault> fault{};
  std::string text{};
  bool names(std::string_view word) const { return text.find(word) != std::string::npos; }
};

template <class Call>
Thrown thrown_by(Call call) {
  try {
    call();
  } catch (const Error& error) { return {error.fault(), error.what()}; }
  return {std::nullopt, "nothing was thrown"};
}

}  // namespace dlock::test
