// The options that say which database and which table a command works on.
#pragma once

#include <dlock/duration.hpp>

#include <initializer_list>
#include <optional>
#include <string>

namespace dlock::tools {

class Command;

// Filled in by the parser; read through the members, which check. All of them throw UsageError.
class ConnectionOptions {
 public:
  // Adds -u, -e, --password-file, --password-stdin, -W, --schema, --table, --history-table, --connect-timeout.
  void add_to(Command& tool);

  // The URL with the password merged in: -u, then -e NAME, then the variables named here, in order.
  // Reads the password from where it was asked to (once). Keep the result away from messages.
  std::string url(std::initializer_list<const char*> variables) const;

  const std::string& schema() const;  // empty: the connection's default
  const std::string& table() const;
  const std::string& history_table() const;  // empty: <table>_schema_history
  Duration connect_timeout() const;

 private:
  std::optional<std::string> url_, url_env_, password_file_;
  std::string schema_, table_ = "resource_lock", history_table_, connect_timeout_ = "10s";
  bool password_stdin_ = false, prompt_ = false;
};

// The URL with this password in it. Throws UsageError if the URL has no host part or a password of its own.
std::string with_password(const std::string& url, const std::string& password);

}  // namespace dlock::tools
