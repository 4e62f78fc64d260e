// This file knows one connection to a MySQL or MariaDB server.
#pragma once

#include "dialects/dialect.hpp"
#include "server.hpp"

#include <mysql.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace dlock::dialects::DLOCK_DIALECT {

class ServerConnection final : public Connection {
 public:
  // Connects and makes the session's settings. Throws Failure.
  ServerConnection(const Server& server, Deadline deadline);
  ~ServerConnection() override;
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  const Answer& run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) override;
  const Answer& run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                         Deadline deadline) override;
  void script(std::string_view sql, Deadline deadline) override;
  std::string default_schema(Deadline deadline) override;
  std::vector<std::string> weaknesses(Deadline deadline) override;
  bool usable() const noexcept override { return usable_; }
  std::string server() const override;

 private:
  struct Prepared {
    MYSQL_STMT* handle = nullptr;
    bool answers_rows = false;
    std::vector<MYSQL_BIND> binds;
    std::vector<std::int64_t> numbers;
    std::vector<unsigned long> lengths;
  };

  void open(const Server& server, Deadline deadline);
  void make_settings(Deadline deadline);
  // Lets one of the library's suspended calls go on until it is done. `status` is what its start answered.
  template <class Continue>
  void finish(int status, Deadline deadline, Continue proceed);
  int wait(int status, Deadline deadline);
  [[noreturn]] void fail(unsigned number, const std::string& text, bool sent);
  [[noreturn]] void fail(bool sent);
  [[noreturn]] void fail(MYSQL_STMT* statement, bool sent);
  Prepared& prepared(const Statement& statement, Deadline deadline);
  void bind(Prepared& prepared, const Statement& statement, std::span<const Argument> arguments);
  void fetch(Prepared& prepared, Deadline deadline);
  // Sends a text of one or more statements; answer_ is the last result with rows.
  void query(const std::string& sql, Deadline deadline);
  void read(MYSQL_RES* result);
  void be_patient(bool patient, Deadline deadline);

  const std::string user_;
  MYSQL* connection_ = nullptr;
  bool mariadb_ = false;
  std::unordered_map<std::string, Prepared> prepared_;  // by text
  Answer answer_;
  bool usable_ = true;
};

template <class Continue>
void ServerConnection::finish(int status, Deadline deadline, Continue proceed) {
  while (status != 0) {
    const int happened = wait(status, deadline);
    if (happened < 0) {
      usable_ = false;
      throw Failure(Cause::timed_out, "MySQL: no answer in time", {}, true);
    }
    status = proceed(happened);
  }
}

}  // namespace dlock::dialects::DLOCK_DIALECT
