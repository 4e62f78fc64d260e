// This file knows how much slower a sanitized program is than one that users run.
#pragma once

namespace dlock::test {

// For lengths that a busy machine must not reach by being slow: a multiple of what an unsanitized test takes.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int slowness = 3;
#else
inline constexpr int slowness = 1;
#endif

}  // namespace dlock::test
