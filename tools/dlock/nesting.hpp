// That nothing waits for what a `dlock run` around it holds: that would never end.
#pragma once

#include <dlock/engine.hpp>

#include <string>

namespace dlock::tools {

// The owners of a run and of all runs around it, outermost first: how a command knows those it is nested in, on
// whatever database and in whatever depth, since owners are random.
inline constexpr const char* owners_variable = "DLOCK_OWNERS";
std::string variable(const char* name);  // empty: not set

bool inside_a_run();
// Throws std::runtime_error if the name is held by a run around this process.
void refuse_nesting(Engine& engine, const std::string& name);

}  // namespace dlock::tools
