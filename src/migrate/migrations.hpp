// The form of a migration: a text cut into steps, each with the question whether it is done.
//
//   -- min_client: 0.1.0             the oldest dlock that can work with this version of the table
//   -- step: create the lock table   up to the next marker: one statement of DDL
//   CREATE TABLE {{lock}} (…);
//   -- probe: it is there            optional: a SELECT of one number: 0 not done, 1 done, else something different
//   SELECT count(*) …;               may use :schema, :lock, :status, :history, :waiter, :holder
#pragma once

#include "dialects/dialect.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

struct Step {
  std::string title;
  std::string_view sql;
  std::string_view probe;  // empty: none
};

// One version, ready to be walked.
struct Migration {
  int version = 0;
  std::string name;
  std::string checksum;
  std::string min_client;
  std::vector<Step> up, down;
  std::vector<std::string> structure;  // what is there at this version, in order; see structure_of()
};

// All migrations of a dialect: versions 1, 2, … without a gap. Throws std::logic_error on a text that breaks the form.
std::vector<Migration> migrations_of(const dialects::Dialect& dialect);

// The arguments of a probe, in order.
inline constexpr std::string_view probe_arguments = "schema, lock, status, history, waiter, holder";
// The name of a probe among the statements of the migrator.
std::string probe_name(bool up, int version, std::size_t step);

// A description of the tables is a list of lines in order:
//
//   lock: table                          what "lock", "waiter", "holder" and "status" (the view) are
//   lock.token: bigint, not null         a column of one
//   lock: PRIMARY KEY (name)             what else it has
//   lock: identity in the floor row      likewise; in these words on every database
//
// Each dialect has words of its own behind the colon; nothing here understands them.

inline constexpr std::string_view identity_line = "lock: identity in the floor row";

// The lines of a file: without comments (#) and empty lines, in order.
std::vector<std::string> structure_of(std::string_view text);

// One sentence for each thing that is not as expected, with the tables' names.
std::vector<std::string> differences(const std::vector<std::string>& expected, const std::vector<std::string>& found,
                                     const dialects::TableNames& names);

// Whether version number `a` ("0.10.1") is newer than `b`.
bool newer(std::string_view a, std::string_view b);

}  // namespace dlock::migrate
