// What the kernel says of this process: its descriptors, its threads, its memory.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace dlock::test {

inline std::set<int> descriptors() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    found.insert(std::atoi(entry.path().filename().c_str()));
  return found;
}

// How many there are; each call has one descriptor of its own among them.
inline std::size_t count_descriptors() { return descriptors().size(); }

inline std::size_t count_threads() {
  // A sanitizer starts a thread of its own with the first. One that was joined may be listed for a moment.
  std::string first;
  std::thread([&] { first = "/proc/self/task/" + std::to_string(::gettid()); }).join();
  while (std::filesystem::exists(first)) std::this_thread::yield();
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// Whether the descriptor is closed when another program is started. True too if it is not open any more.
inline bool closed_on_exec(int descriptor) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(descriptor));
  constexpr unsigned long cloexec = 02000000;
  for (std::string word, value; info >> word >> value;)
    if (word == "flags:") return (std::stoul(value, nullptr, 8) & cloexec) != 0;
  return true;
}

// What a descriptor leads to, for messages.
inline std::string target_of(int descriptor) {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), gone).string();
}

// Resident memory in MiB.
inline long memory() {
  long size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * 4096 / (1 << 20);
}

}  // namespace dlock::test
