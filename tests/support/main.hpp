// This file knows what a test program can ask for before its tests run.
#pragma once

namespace dlock::test {

// What is constructed from a function before main() makes main() call it first. If it answers anything but 0, the
// program ends with that number: 77 means "skipped".
struct Precondition {
  explicit Precondition(int (*met)());
};

}  // namespace dlock::test
