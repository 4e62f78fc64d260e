// Shared memory without a name.
#include "seats.hpp"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace bench {

Seats::Seats(std::size_t count) : count_(count) {
  void* memory = ::mmap(nullptr, count * sizeof(Seat), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error(fmt::format("mmap: {}", std::strerror(errno)));
  seats_ = static_cast<Seat*>(memory);
  std::uninitialized_value_construct_n(seats_, count);
}

Seats::~Seats() { ::munmap(seats_, count_ * sizeof(Seat)); }

void write_down(std::span<char> room, const char* text) noexcept {
  const auto length = std::min(std::strlen(text), room.size() - 1);
  std::copy_n(text, length, room.begin());
  room[length] = '\0';
}

}  // namespace bench
