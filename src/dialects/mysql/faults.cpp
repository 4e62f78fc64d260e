// Which error number is which cause (MySQL manual "Server Error Message Reference", MariaDB "Error Codes"), and what a
// person is advised.
#include "faults.hpp"

#include "types/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace dlock::dialects::mysql {
namespace {

struct ErrorNumberCause {
  unsigned number;
  Cause cause;
};

constexpr ErrorNumberCause table[] = {
    {2001, Cause::refused},  // no socket could be made: the process has no descriptor left
    {2004, Cause::refused},         {2019, Cause::rejected},  // the client library lacks the character set
    {2058, Cause::rejected},                                  // or a plugin
    {2059, Cause::rejected},        {2002, Cause::refused},   // cannot connect through the socket
    {2003, Cause::refused},                                   // cannot connect over TCP
    {2005, Cause::refused},                                   // unknown host
    {1040, Cause::refused},                                   // too many connections
    {1203, Cause::refused},                                   // too many connections of this user
    {1226, Cause::refused},                                   // or more than its account may have, or ask, in an hour
    {3032, Cause::refused},                                   // offline mode
    {1053, Cause::disconnected},                              // server shutdown in progress
    {1077, Cause::disconnected},    {1079, Cause::disconnected},
    {2006, Cause::disconnected},                                  // server has gone away
    {2013, Cause::disconnected},                                  // lost during a query
    {2055, Cause::disconnected},    {1158, Cause::disconnected},  // reading or writing packets failed, or took too long
    {1159, Cause::disconnected},    {1160, Cause::disconnected},
    {1161, Cause::disconnected},    {1927, Cause::disconnected},  // connection was killed
    {4031, Cause::disconnected},                                  // idle too long
    {1047, Cause::read_only},                                     // Galera: not prepared for use
    {1205, Cause::locked},          {3572, Cause::locked},        // NOWAIT
    {1213, Cause::deadlock},        {1614, Cause::deadlock},
    {1020, Cause::serialization},  // record has changed since last read
    {3101, Cause::serialization},  // group replication: rolled back while committing
    {3781, Cause::timed_out},      // group replication: the wait for the other servers was too long, or was killed
    {3782, Cause::timed_out},       {3783, Cause::read_only},  // or this server is no member that could wait for them
    {3796, Cause::read_only},       {3797, Cause::timed_out},
    {3798, Cause::read_only},       {3799, Cause::read_only},
    {1290, Cause::read_only},  // --read-only, --super-read-only
    {1792, Cause::read_only},       {1836, Cause::read_only},
    {1021, Cause::read_only},                                  // disk full
    {1114, Cause::read_only},                                  // table full
    {1969, Cause::timed_out},                                  // max_statement_time
    {3024, Cause::timed_out},       {1317, Cause::timed_out},  // query was interrupted
    {1146, Cause::schema},          {1054, Cause::schema},
    {1690, Cause::schema},  // a BIGINT out of range: the token where there is no floor
    {1049, Cause::schema},  // unknown database
    {1356, Cause::schema},  // the view refers to something that is not there
    {1044, Cause::permission},      {1045, Cause::permission},
    {1142, Cause::permission},      {1143, Cause::permission},
    {1227, Cause::permission},      {1370, Cause::permission},
    {1419, Cause::permission},  // a trigger needs SUPER where there is a binary log
    {1698, Cause::permission},      {password_in_clear, Cause::permission},
    {1461, Cause::refused},          // too many prepared statements: nothing was run
    {1243, Cause::stale_statement},  // unknown prepared statement
    {1615, Cause::stale_statement},  // needs to be prepared again
};

// 1180, "Got error N … during COMMIT": 1 is MariaDB's SKIP LOCKED in a session that never waits, and 149 a commit that
// group replication refused. Anything else is a node of a cluster that has lost the others, and nobody knows what they
// have.
Cause cause_of_commit(std::string_view text) {
  const auto digits = text.substr(std::min(text.find_first_of("0123456789"), text.size()));
  const auto number = digits.substr(0, digits.find_first_not_of("0123456789"));
  if (number == "1" && !planted("skipped_row_in_doubt")) return Cause::locked;
  return number == "149" ? Cause::deadlock : Cause::disconnected;
}

// What the client library finds by itself: it has lost the server, or the thread of what the server says.
constexpr bool is_of_client(unsigned number) { return number >= 2000 && number <= 2999; }

// MariaDB, of a trigger that is fit, where KILL QUERY came while it was read.
bool is_unread_trigger(unsigned number, std::string_view text) {
  return number == 1064 && text.find("has an error in its body") != std::string_view::npos;
}

Cause cause_of(unsigned number, std::string_view text) {
  if (is_unread_trigger(number, text)) return Cause::timed_out;
  if (number == 1180) return cause_of_commit(text);
  const auto is_it = [&](const ErrorNumberCause& row) { return row.number == number; };
  const auto found = std::find_if(std::begin(table), std::end(table), is_it);
  if ((number == 1226 || number == 2004) && planted("full_account_is_final")) return Cause::rejected;
  if (found != std::end(table)) return found->cause;
  return is_of_client(number) ? Cause::disconnected : Cause::rejected;
}

std::string advice(unsigned number, const std::string& user) {
  switch (number) {
    case 1146:
    case 1054: return "; run \"dlock-migrate up\"";
    case 1045:
    case 1698: return "; the password comes from the URL or from the group [client] of an option file";
    case password_in_clear:
      return "; the account's way to log in shows the password to the network: switch TLS on at the server, use its "
             "unix socket, or give the account another plugin";
    case 1049: return "; create it (CREATE DATABASE), or name another one in the URL";
    case 1142:
    case 1143:
      return fmt::format(
          "; the account needs: GRANT SELECT, INSERT, UPDATE, DELETE ON the lock table and its tables of "
          "those who wait and who hold together (…_waiter, …_holder) TO {} (the history table and the view: SELECT)",
          user);
    case 1461: return "; raise max_prepared_stmt_count at the server, or write prepared=off in the URL";
    case 1792:
      return "; a lock needs a transaction that writes: this one is READ ONLY, or transaction_read_only is on there";
    case 1419:
      return "; the server writes a binary log: have a user with SUPER make the trigger, or SET GLOBAL "
             "log_bin_trust_function_creators = 1";
    default: return {};
  }
}

}  // namespace

Failure failure_of(unsigned number, const std::string& text, const std::string& user, bool may_have_run) {
  const auto cause = cause_of(number, text);
  if (number == 1690)
    return {cause,
            fmt::format("MySQL: the floor row of the lock table is missing: run \"dlock-migrate repair\" ({}: {})",
                        number, text),
            std::to_string(number)};
  return {cause, fmt::format("MySQL: {} ({}){}", text, number, advice(number, user)), std::to_string(number),
          may_have_run && cause == Cause::disconnected};
}

}  // namespace dlock::dialects::mysql
