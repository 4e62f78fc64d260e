// What a history means: what is applied, what stands in the way, and what to do about it.
#pragma once

#include "migrate/history.hpp"
#include "migrate/migrations.hpp"
#include "types/failure.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

// How far a table has come on its migrations.
enum class SchemaState {
  good,          // at the newest version this binary knows, or at a newer one it can work with
  pending,       // older than this binary
  at_work,       // another migrator is at work on a version right now
  interrupted,   // a version is failed, or its migrator died
  unrecorded,    // the table is there, and no history tells how it came to be
  drift,         // history and binary, or history and database, contradict each other
  incompatible,  // made by a newer dlock that says this one cannot work with it
};

struct Assessment {
  SchemaState state = SchemaState::good;
  std::string message, hint;  // one sentence each, for people
  int current = 0;            // the newest version that is applied, with all below it
  int latest = 0;             // the newest that this binary knows
};

// Names of tables, and how a person names them to dlock-migrate.
struct Named {
  dialects::TableNames names;
  std::string flags;  // " --table T": the options that are not the defaults
};
Named named(const dialects::TableNames& names, std::string_view default_schema);

// `client` is the version of this binary.
Assessment assess(const SchemaSnapshot& found, const std::vector<Migration>& migrations, std::string_view client,
                  const Named& table);

// `run "dlock-migrate up --table T"`
std::string hint_command(std::string_view command, const Named& table);

// The table's name for messages.
std::string shown(const dialects::TableNames& names);

// A refusal or a failure of the migrator that is more than a failed statement.
class MigrationError : public Failure {
 public:
  enum class Reason { failed, pending, drift, interrupted, locked, incompatible, stopped };
  MigrationError(Reason reason, const std::string& message, std::string hint = {}, std::string code = {})
      : Failure(cause_of(reason), hint.empty() ? message : message + "; " + hint, std::move(code)),
        reason_(reason),
        message_(message),
        hint_(std::move(hint)) {}

  Reason reason() const noexcept { return reason_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }

 private:
  static Cause cause_of(Reason reason) noexcept {
    return reason == Reason::locked || reason == Reason::stopped ? Cause::locked : Cause::schema;
  }
  Reason reason_;
  std::string message_, hint_;
};

}  // namespace dlock::migrate
