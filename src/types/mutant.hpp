// Faults that the tests must notice, planted where a build asks for them (DLOCK_MUTANTS) and chosen by the environment
// variable DLOCK_MUTANT. In every other build nothing of them is left, not even their names.
//
// A fault is written `planted("name") ? wrong : right` or `if (!planted("name")) right;`, never in a constexpr
// function. tests/mutants/list says which test notices it; tools/dev/mutants asks.
#pragma once

#include <chrono>
#include <string_view>

namespace dlock {

#ifdef DLOCK_MUTANTS
// Whether this is the chosen fault; that it was reached is noted once a process. Any thread may ask.
bool planted(std::string_view name) noexcept;
// Sleeps: a fault may, where the code around it must not.
void delay(std::chrono::milliseconds length) noexcept;
#else
consteval bool planted(std::string_view) noexcept { return false; }
inline void delay(std::chrono::milliseconds) noexcept {}
#endif

}  // namespace dlock
