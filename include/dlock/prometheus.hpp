// Says what engines have done in the text format of Prometheus. Include it where metrics are served; <dlock/dlock.hpp>
// does without it.
#pragma once

#include <dlock/export.hpp>
#include <dlock/stats.hpp>

#include <map>
#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {

// What goes into the answer's Content-Type.
inline constexpr std::string_view prometheus_content_type = "text/plain; version=0.0.4; charset=utf-8";

// All of these engines' numbers in one exposition, ready to be the body of an answer: seconds, totals since each engine
// was opened, and the label `engine` with what the engine is called in the map. Call them by what is the same after a
// restart ("orders"), and few: every engine is a series of each metric. The names that are waited for are counted and
// not named, because there may be any number of them.
// Fails: Error{misuse} for a name that is longer than 255 bytes, or not UTF-8. It may contain any character but NUL.
DLOCK_EXPORT std::string prometheus_text(const std::map<std::string, Stats>& engines);

// Of one engine.
DLOCK_EXPORT std::string prometheus_text(std::string_view engine, const Stats& stats);

}  // namespace v0
}  // namespace dlock
