// This file knows the commands of dlock-migrate, from their options to their exit codes.
#pragma once

#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace dlock::tools::migrate {

// Everything on the command line, as text. Checked where it is used.
struct Line {
  ConnectionOptions connection;
  std::string to, from, wait = "0", dialect;
  std::string lock_timeout = "60s", ddl_lock_timeout = "3s", ddl_retries = "10", statement_timeout = "0";
  bool create_schema = false, force = false, yes = false, exit_code = false, downwards = false, no_history = false;
  bool to_given = false, from_given = false;
};

// Adds the subcommands to `app`; the one that was given runs as `run(console)` afterwards.
class Commands {
 public:
  explicit Commands(CLI::App& app);
  int run(Console& console);

 private:
  int up(Console& console);
  int down(Console& console);
  int status(Console& console);
  int check(Console& console);
  int sql(Console& console);

  Line line_;
  CLI::App *up_, *down_, *status_, *check_, *sql_;
};

}  // namespace dlock::tools::migrate
