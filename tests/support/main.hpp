// What a test program can ask for before and after its tests run.
#pragma once

namespace dlock::test {

// What is constructed from a function before main() makes main() call it first. If it answers anything but 0, the
// program ends with that number: 77 means "skipped".
struct Precondition {
  explicit Precondition(int (*met)());
};

// Likewise, what main() calls when all tests have run.
struct Afterwards {
  explicit Afterwards(void (*tidy)());
};

}  // namespace dlock::test
