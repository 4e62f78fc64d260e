// What a history means: what is applied, what stands in the way, and what to do about it.
#pragma once

#include "migrate/history.hpp"
#include "migrate/migrations.hpp"
#include "types/failure.hpp"

#include <dlock/schema.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

using schema::SchemaState;

// `locked`: another migrator is at work on a version right now.
struct Assessment {
  SchemaState state = SchemaState::good;
  std::string message, hint;  // one sentence each, for people
  int current = 0;            // the newest version that is applied, with all below it
  int latest = 0;             // the newest that this binary knows
};

// It has drifted in that the table is there, and no history tells how it came to be.
inline bool unrecorded(const Assessment& assessment, const SchemaSnapshot& found) {
  return assessment.state == SchemaState::drift && found.rows.empty();
}

// Names of tables, and how a person names them to dlock-migrate.
struct Named {
  dialects::TableNames names;
  std::string flags;  // " --table T": the options that are not the defaults
};
Named named(const dialects::TableNames& names, std::string_view default_schema);
// The same, in the connection's own schema unless they say another one. Throws Error{misuse} where there is none.
Named named_on(dialects::Connection& connection, dialects::TableNames names);
// Throws Error{misuse} for what cannot be names of tables.
dialects::TableNames names_of(const schema::Options& options);

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
  MigrationError(SchemaState state, const std::string& message, std::string hint = {}, std::string code = {})
      : Failure(cause_of(state), hint.empty() ? message : message + "; " + hint, std::move(code)),
        state_(state),
        message_(message),
        hint_(std::move(hint)) {}

  SchemaState state() const noexcept { return state_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }

 private:
  static Cause cause_of(SchemaState state) noexcept {
    return state == SchemaState::locked || state == SchemaState::stopped ? Cause::locked : Cause::schema;
  }
  SchemaState state_;
  std::string message_, hint_;
};

// Reads, and needs nothing but SELECT on the lock table and its history. Throws Failure{schema} naming the command to
// run if the table is missing, older than this library, too new for it, half migrated, of another shape, or without
// its floor row and the identity in that. A table without a history (made from "dlock-migrate sql --no-history") is
// accepted if its columns and its floor row are there. `names.schema` must not be empty unless the database has none.
void check_compatible(dialects::Connection& connection, const dialects::Dialect& dialect,
                      const dialects::TableNames& names, Deadline deadline);

}  // namespace dlock::migrate
