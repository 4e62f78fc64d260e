// How rows of the lock table are shown to people and to scripts.
#pragma once

#include "tools/shared/console.hpp"

#include <dlock/holder.hpp>

#include <string>
#include <vector>

namespace dlock::tools {

// Who holds it, for people: the label, and enough of the random owner to tell two of them apart; of several the one
// that came last, and how many more there are; "-": nobody.
std::string who(const Holder& row);

// For how much longer it is held or closed; "-": neither.
std::string left(const Holder& row);

// NAME OWNER TOKEN HELD LEFT STATE WAITERS, in columns; PERMITS, where a row has some; and LAST ENDED OUTCOME, where a
// row tells of its last run.
std::string as_table(const std::vector<Holder>& rows);

// BEGUN ENDED HELD TOKEN MODE WHO OUTCOME, in columns.
std::string as_table(const std::vector<HistoryEntry>& entries);

// Every field, a line each.
std::string as_lines(const Holder& row);

Json as_json(const Holder& row);
Json as_json(const HistoryEntry& entry);

// `"nightly" is held by web3-4711-9f2c (token 42) for 3m12s; lease ends in 8.2s unless renewed`
std::string why_busy(const Holder& row);

// A no is an answer: a plain line on standard error (not with -q), or with --format json an error object.
void say_busy(const Holder& row, Console& console);
int say_busy(const std::string& text, Console& console);  // answers Exit::busy
int say_no(const std::string& text, Console& console);    // answers Exit::no

}  // namespace dlock::tools
