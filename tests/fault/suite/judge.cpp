// Judges a kept run again: says every violation in it and how often each thing happened, and ends with 1 if there is
// one.
#include "fault/suite/kept_run.hpp"

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  using namespace dlock::test;
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER   (of a run of the fault suite that was kept)\n";
    return 2;
  }
  try {
    const auto run = read_run(argv[1]);
    for (const auto& [what, times] : counts(run.history)) std::cout << to_string(what) << ' ' << times << '\n';
    const auto found = violations(run.history, run.books);
    for (const auto& violation : found) std::cout << "violation: " << violation << '\n';
    if (found.empty()) std::cout << "no violation\n";
    return found.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
