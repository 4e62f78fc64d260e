// An application's own connection, which it hands over for its transactions.
#pragma once

#include "support/exit_status.hpp"
#include "support/test_database.hpp"

#include <dlock/transaction.hpp>

#include <sys/types.h>
#include <functional>
#include <memory>
#include <string>

namespace dlock::test {

// Through SOCI. Threads: one at a time. Fails: std::exception.
class Caller {
 public:
  explicit Caller(const TestDatabase& test_database);
  Caller(const ServerTestDatabase& test_database, const Address& door);  // through another door
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // As a native handle, and as a function that runs SQL.
  TransactionRef native();
  const SqlRunner& runner() const noexcept { return runner_; }

  void run(const std::string& sql);
  void run_anyway(const std::string& sql);  // what a careless caller does: goes on, whatever is thrown
  void begin(const Beginning& beginning) {
    for (const auto& sql : beginning.statements) run(sql);
  }
  std::string text(const std::string& sql);  // the first field of the first row
  long long number(const std::string& sql);

 private:
  explicit Caller(std::unique_ptr<soci::session> session);

  const std::unique_ptr<soci::session> sql_;
  SqlRunner runner_;
};

// A copy of this process that does one thing and is killed at the latest by the destructor. To be made before there are
// other threads. `work` gets a function that says one line to the parent, and its end is the end of the process.
class Copy {
 public:
  using Say = std::function<void(const std::string&)>;
  explicit Copy(const std::function<void(const Say&)>& work);
  ~Copy();
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  std::string line();  // empty when its output has ended
  void signal(int number);
  ExitStatus wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace dlock::test
