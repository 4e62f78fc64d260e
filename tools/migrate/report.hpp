// How reports and states look, as text and as JSON, and with which code they leave.
#pragma once

#include "tools/shared/console.hpp"
#include "tools/shared/exit_code.hpp"

#include <dlock/guard.hpp>
#include <dlock/schema.hpp>

#include <string_view>

namespace dlock::tools::migrate {

// `reading`: of a command that only looks; a migrator at work is then a version still pending.
Exit exit_code(schema::SchemaState state, bool reading) noexcept;

// What was done to versions, in a word ("applied"), or what a dry run would do. Answers the exit code.
int print(Console& console, const schema::Report& report, bool dry_run, std::string_view done);

// Statements, without blank lines around them.
void print_script(Console& console, std::string_view text);

// What became of a guard, or, where nothing was to be done, its statements. Answers the exit code.
int print(Console& console, const schema::GuardReport& report, bool applied);

// The table of versions.
void print(Console& console, const schema::Status& status);

// Whether all is well, in one line. Answers the exit code.
int report(Console& console, const schema::Status& status);

}  // namespace dlock::tools::migrate
