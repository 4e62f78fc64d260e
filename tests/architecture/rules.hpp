// Which rules there are. Each looks at a tree and answers what breaks it.
#pragma once

#include "architecture/tree.hpp"

namespace dlock::architecture {

// Includes go down the house only: types < dialects < migrate < store < engine < api; the public headers know nobody,
// the tools know only the public headers, and no dialect knows another one.
Breaches arrows(const Tree& tree);

// A library whose headers take seconds to compile is included by the one file of a program that all others ask instead.
Breaches costly_headers(const Tree& tree);

// A database's name and its client library stand in the code of its own folder only.
Breaches vendors(const Tree& tree);

// SQL is in .sql files.
Breaches glued_sql(const Tree& tree);

// What must never be used, wherever it is.
Breaches forbidden_calls(const Tree& tree);

// Where time is decided, only the boot clock is read, and nobody sleeps.
Breaches clocks(const Tree& tree);

// The library's threads are started in one place, which sees to signals, to what is thrown and to fork().
Breaches threads(const Tree& tree);

// A name has one meaning and is the field's word: those of the private language that was spoken here once stay away.
Breaches retired_words(const Tree& tree);

// All dialects have the same named statements with the same arguments, and the one that two products share keeps to
// what both of them understand.
Breaches statements(const Tree& tree);

// A file begins with a sentence that says what it is and does.
Breaches first_comments(const Tree& tree);

// Every fault that can be planted is in tests/mutants/list, and every row of that is planted; its test is there, and
// the text that it replaces is in its statement.
Breaches mutants(const Tree& tree);

// No file of the library is longer than this.
Breaches lengths(const Tree& tree, std::size_t most_lines);
Breaches widths(const Tree& tree, std::size_t most_columns);

}  // namespace dlock::architecture
