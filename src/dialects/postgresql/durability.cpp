// Which of the server's settings let a crash, or a failover, forget what was granted.
#include "connection.hpp"

#include <fmt/format.h>

namespace dlock::dialects::postgresql {

std::vector<std::string> ServerConnection::weaknesses(Deadline deadline) {
  script(
      "SELECT current_setting('fsync'), current_setting('full_page_writes'),"
      " current_setting('synchronous_commit'), current_setting('synchronous_standby_names') <> '',"
      " (SELECT count(*) FROM pg_catalog.pg_stat_replication"
      "   WHERE application_name NOT IN ('pg_basebackup', 'pg_receivewal'))",
      deadline);
  const auto &fsync = answer_.text(0, 0), &full_pages = answer_.text(0, 1), &commit = answer_.text(0, 2);
  const bool synchronous_standby = answer_.text(0, 3) == "t";
  std::vector<std::string> found;
  if (fsync != "on")
    found.emplace_back("fsync is off: a crash of the machine can damage the database, and forgets grants");
  if (full_pages != "on")
    found.emplace_back("full_page_writes is off: a crash of the machine can damage the lock table");
  if (commit == "off")
    found.emplace_back(
        "synchronous_commit is off: a crash forgets the last grants, and they are granted again with the "
        "same tokens");
  if ((commit == "local" || commit == "remote_write") && synchronous_standby)
    found.push_back(
        fmt::format("synchronous_commit is {}: a failover to a standby forgets the last grants, and they "
                    "are granted again with the same tokens",
                    commit));
  if (answer_.integer(0, 4) > 0 && !synchronous_standby)
    found.emplace_back(
        "synchronous_standby_names is empty, and a standby follows: a failover to it forgets the last "
        "grants, and they are granted again with the same tokens");
  return found;
}

}  // namespace dlock::dialects::postgresql
