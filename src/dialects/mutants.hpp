// Plants a fault in the statements of a dialect: what stands there instead is read from the folder DLOCK_MUTANTS.
//
// Form of a file, <dialect>.sql:
//
//   -- mutant: release_forgets_token
//   -- statement: release
//   -- from:
//   AND token = :token
//   -- to:
//   AND (true OR token = :token)
//
// A mutant may have several statements, and a statement several pairs of from and to: each begins with its own
// "-- statement:". Every occurrence of `from` in the statement is replaced. A text goes to the next line that begins
// with "-- "; empty lines around it are no part of it.
#pragma once

#include <string>
#include <string_view>

namespace dlock::dialects {

#ifdef DLOCK_MUTANTS
// The statements with the chosen fault in them, or as they are if it is none of theirs. Ends the process with 99
// where the text to be replaced is not there: a fault that cannot be planted must not look like one that was noticed.
std::string with_planted(std::string_view sql, std::string_view dialect);
#else
inline std::string_view with_planted(std::string_view sql, std::string_view) noexcept { return sql; }
#endif

}  // namespace dlock::dialects
