// The watches that a database's files need, and those of their events that matter.
#include "notices.hpp"

#include "types/failure.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace dlock::dialects::sqlite {
namespace {

std::string resolved(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

}  // namespace

Notices::Notices(const std::string& path)
    : folder_(std::filesystem::path(resolved(path)).parent_path().string()),
      name_(std::filesystem::path(resolved(path)).filename().string()),
      descriptor_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (descriptor_ < 0) refused();
  folder_watch_ = ::inotify_add_watch(descriptor_, folder_.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  if (folder_watch_ < 0 || ::inotify_add_watch(descriptor_, (folder_ + '/' + name_).c_str(), IN_MODIFY) < 0) {
    const int error = errno;
    ::close(descriptor_);
    errno = error;
    refused();
  }
  watch_files();
}

Notices::~Notices() { ::close(descriptor_); }

void Notices::refused() const {
  throw Failure(Cause::refused, fmt::format("SQLite, {}/{}: the kernel has no room to watch it: {}", folder_, name_,
                                            std::generic_category().message(errno)));
}

// What is watched already stays so; what is not there is waited for by its folder.
void Notices::watch_files() {
  for (const auto* kind : {"", "-wal", "-journal"})
    static_cast<void>(::inotify_add_watch(descriptor_, (folder_ + '/' + name_ + kind).c_str(), IN_MODIFY));
}

bool Notices::take() {
  alignas(inotify_event) std::array<char, 16384> buffer{};
  bool ours = false, made = false;
  for (;;) {
    const auto size = ::read(descriptor_, buffer.data(), buffer.size());
    if (size <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const std::string_view name(event.len == 0 ? "" : buffer.data() + at + sizeof event);
      at += sizeof event + event.len;
      const bool in_folder = event.wd == folder_watch_ && (event.mask & IN_Q_OVERFLOW) == 0;
      if (in_folder && !name.starts_with(name_)) continue;
      made = made || in_folder;
      ours = true;
    }
  }
  if (made) watch_files();
  return ours;
}

}  // namespace dlock::dialects::sqlite
