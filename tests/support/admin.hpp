// How a test looks at the lock table, and changes it, behind the engine's back.
#pragma once

#include "support/test_database.hpp"

#include <dlock/duration.hpp>
#include <dlock/token.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace dlock::test {

// An administrative connection of its own, through SOCI.
// Threads: one at a time. Fails: std::exception.
class Admin {
 public:
  explicit Admin(const TestDatabase& test_database);
  ~Admin();

  void run(const std::string& sql);
  long long number(const std::string& sql);  // the first field of the first row; 0 if there is none, or NULL
  std::string text(const std::string& sql);  // likewise; empty

  // The row's times, as if `by` had passed since they were written.
  void age(std::string_view name, Duration by);
  // The row's lease, and that of all who share it, as if it had just ended; its at-least time stays.
  void expire(std::string_view name);
  // The row was idle for days: a candidate for the reaper.
  void make_idle_for_days(std::string_view name);

  bool exists(std::string_view name);
  Token token(std::string_view name);
  Token floor();
  std::string owner(std::string_view name);
  Duration expires_at(std::string_view name);
  Duration reopens_at(std::string_view name);
  Duration acquired_at(std::string_view name);
  // Everything the row says, to compare.
  std::string row(std::string_view name);
  // How many rows have an owner, live or expired.
  int held();

  // Keeps the row locked (on a database without row locks: everything) until unblock().
  void block(std::string_view name);
  void unblock();

 private:
  long long column(const char* column, std::string_view name);
  const TestDatabase& test_database_;
  std::unique_ptr<soci::session> sql_;
};

}  // namespace dlock::test
