// The environment and the files that say where the servers of a test run are.
#include "support/server_url.hpp"
#include "support/paths.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace dlock::test {

bool server_is_chosen(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value != nullptr && *value != '\0';
}

std::optional<std::string> server_url(const std::string& variable) {
  if (server_is_chosen(variable)) return std::getenv(variable.c_str());
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(path::running_servers(), none)) {
    if (file.path().extension() != ".env") continue;
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(variable + "=")) return line.substr(variable.size() + 1);
  }
  return std::nullopt;
}

// Of a process that was killed something may be left, and its number may come again.
std::string unique_suffix() {
  static std::atomic<int> count{0};
  static const auto begun =
      std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds{1} % 1'000'000;
  return std::to_string(::getpid()) + '_' + std::to_string(begun) + '_' + std::to_string(++count);
}

}  // namespace dlock::test
