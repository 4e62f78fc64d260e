// This file knows which error number is which cause (MySQL manual "Server Error Message Reference", MariaDB "Error Codes").
#include "faults.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

struct Row {
  unsigned number;
  Cause cause;
};

constexpr Row table[] = {
    {2002, Cause::refused},        // cannot connect through the socket
    {2003, Cause::refused},        // cannot connect over TCP
    {2005, Cause::refused},        // unknown host
    {1040, Cause::refused},        // too many connections
    {1203, Cause::refused},        // too many connections of this user
    {3032, Cause::refused},        // offline mode
    {1053, Cause::disconnected},   // server shutdown in progress
    {1077, Cause::disconnected},
    {1079, Cause::disconnected},
    {2006, Cause::disconnected},   // server has gone away
    {2013, Cause::disconnected},   // lost during a query
    {2055, Cause::disconnected},
    {1158, Cause::disconnected},   // reading or writing packets failed, or took too long
    {1159, Cause::disconnected},
    {1160, Cause::disconnected},
    {1161, Cause::disconnected},
    {1927, Cause::disconnected},   // connection was killed
    {4031, Cause::disconnected},   // idle too long
    {1047, Cause::read_only},      // Galera: not prepared for use
    {1205, Cause::locked},
    {3572, Cause::locked},         // NOWAIT
    {1180, Cause::locked},         // SKIP LOCKED without patience
    {1213, Cause::deadlock},
    {1614, Cause::deadlock},
    {1020, Cause::serialization},  // record has changed since last read
    {3101, Cause::serialization},  // group replication: rolled back while committing
    {1290, Cause::read_only},      // --read-only, --super-read-only
    {1792, Cause::read_only},
    {1836, Cause::read_only},
    {1021, Cause::read_only},      // disk full
    {1114, Cause::read_only},      // table full
    {1969, Cause::timed_out},      // max_statement_time
    {3024, Cause::timed_out},
    {1317, Cause::timed_out},      // query was interrupted
    {1146, Cause::schema},
    {1054, Cause::schema},
    {1049, Cause::schema},         // unknown database
    {1356, Cause::schema},         // the view refers to something that is not there
    {1044, Cause::permission},
    {1045, Cause::permission},
    {1142, Cause::permission},
    {1143, Cause::permission},
    {1227, Cause::permission},
    {1370, Cause::permission},
    {1698, Cause::permission},
    {1243, Cause::stale_statement},  // unknown prepared statement
    {1615, Cause::stale_statement},  // needs to be prepared again
};

std::string advice(unsigned number, const std::string& user) {
  switch (number) {
    case 1146:
    case 1054: return "; run \"dlock-migrate up\"";
    case 1045:
    case 1698: return "; the password comes from the URL or from the group [client] of an option file";
    case 1049: return "; create it (CREATE DATABASE), or name another one in the URL";
    case 1142:
    case 1143:
      return fmt::format("; the account needs: GRANT SELECT, INSERT, UPDATE, DELETE ON the lock table and its table of "
                         "those who wait (…_waiter) TO {} (the history table and the view: SELECT)",
                         user);
    default: return {};
  }
}

}  // namespace

Failure failure_of(unsigned number, const std::string& text, const std::string& user, bool may_have_run) {
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const Row& row) { return row.number == number; });
  const auto cause = found == std::end(table) ? Cause::rejected : found->cause;
  return {cause, fmt::format("MySQL: {} ({}){}", text, number, advice(number, user)), std::to_string(number),
          may_have_run && cause == Cause::disconnected};
}

}  // namespace dlock::dialects::DLOCK_DIALECT
