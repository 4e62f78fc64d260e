// The commands of dlock-migrate, and what their options are where they are not given. Exit codes: report.hpp.
#pragma once

#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <dlock/schema.hpp>

#include <optional>
#include <string>

namespace dlock::tools::migrate {

// Everything on the command line, as text. Checked where it is used, by the members, which throw UsageError.
struct Line {
  ConnectionOptions connection;
  std::optional<std::string> from, to, mark_applied, discard, dialect, grantee;
  std::string wait = "0", role, at;
  std::string lock_timeout = "60s", ddl_lock_timeout = "3s", ddl_retries = "10", statement_timeout = "0";
  bool no_lock = false, dry_run = false, create_schema = false, force = false, yes = false;
  std::string guarded, column;         // of guard
  bool apply = false, remove = false;  // of guard and history
  bool exit_code = false, downwards = false, no_history = false, no_verify = false;

  schema::Options options(Console& console) const;
  std::string url() const { return connection.url({"DLOCK_MIGRATE_URL", "DLOCK_URL"}); }
};

// A version as it was written behind `flag`.
int version_of(std::string_view flag, const std::string& text);
std::optional<int> version_of(std::string_view flag, const std::optional<std::string>& text);

// Adds its commands to the tool; the one that was given runs as `run(console)` afterwards.
class Commands {
 public:
  explicit Commands(Command& tool);
  int run(Console& console);

 private:
  void add_writing(Command& tool);
  void add_reading(Command& tool);
  void add_guard(Command& tool);
  void add_history(Command& tool);

  template <class Work>
  int change(Console& console, schema::Options options, std::string_view done, Work work);
  template <class Sql, class Act>
  int change_triggers(Console& console, schema::Options options, Sql sql, Act act);

  int up(Console& console);
  int down(Console& console);
  int baseline(Console& console);
  int repair(Console& console);
  int status(Console& console);
  int plan(Console& console);
  int check(Console& console);
  int dump(Console& console);
  int grants(Console& console);
  int sql(Console& console);
  int guard(Console& console);
  int history(Console& console);

  Line line_;
  Command *up_ = nullptr, *down_ = nullptr, *baseline_ = nullptr, *repair_ = nullptr;
  Command *status_ = nullptr, *plan_ = nullptr, *check_ = nullptr, *dump_ = nullptr;
  Command *grants_ = nullptr, *sql_ = nullptr, *guard_ = nullptr, *history_ = nullptr;
};

}  // namespace dlock::tools::migrate
