// Chooses the planted fault by the environment, and notes that it was reached.
#ifdef DLOCK_MUTANTS
#include "types/mutant.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

namespace dlock {
namespace {

const std::string& chosen() {
  static const std::string name = [] {
    const char* value = std::getenv("DLOCK_MUTANT");
    return std::string(value == nullptr ? "" : value);
  }();
  return name;
}

// One write, so that processes that share the file do not mix their lines.
void note_reached(std::string_view name) {
  static std::atomic_flag noted;
  const char* path = std::getenv("DLOCK_MUTANT_REACHED");
  if (path == nullptr || noted.test_and_set()) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  const auto line = std::string(name) + ' ' + std::to_string(getpid()) + '\n';
  [[maybe_unused]] const auto written = write(file, line.data(), line.size());
  close(file);
}

}  // namespace

bool planted(std::string_view name) noexcept {
  if (name != chosen()) return false;
  note_reached(name);
  return true;
}

void delay(std::chrono::milliseconds length) noexcept { std::this_thread::sleep_for(length); }

}  // namespace dlock
#endif
