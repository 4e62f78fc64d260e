// How a run is told to scripts: one JSON object in a file.
#include "report.hpp"

#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dlock::tools::run {

namespace {

bool same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool write_all(int descriptor, const std::string& text) {
  ssize_t count = 0;
  while ((count = ::write(descriptor, text.data(), text.size())) < 0 && errno == EINTR) {}
  return count == static_cast<ssize_t>(text.size());
}

}  // namespace

StatusFile::StatusFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0)
    throw UsageError(fmt::format("--status-file {} cannot be written: {}", in_quotes(path), std::strerror(errno)));
  struct stat file {};
  if (::fstat(descriptor_, &file) != 0) return;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat other {};
    if (::fstat(stream, &other) != 0 || !same(file, other)) continue;
    // At the place where that has come to: what is opened anew begins at the first byte.
    if (const int as_it_is = ::fcntl(stream, F_DUPFD_CLOEXEC, 0); as_it_is >= 0) {
      ::close(descriptor_);
      descriptor_ = as_it_is;
    }
    of_console_ = true;
    return;
  }
  if (!S_ISREG(file.st_mode)) return;
  regular_ = true;
  static_cast<void>(::ftruncate(descriptor_, 0));
}

StatusFile::~StatusFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// False: it is to be written where it is. Who reads it meanwhile finds the one text or the other, whole.
bool StatusFile::replace(const std::string& text) const {
  struct stat file {
  }, named{};
  if (!regular_ || ::fstat(descriptor_, &file) != 0 || ::lstat(path_.c_str(), &named) != 0) return false;
  // A link is none; of another name for it nobody would be told.
  if (!S_ISREG(named.st_mode) || file.st_nlink > 1) return false;
  auto beside = path_ + ".XXXXXX";
  const int descriptor = ::mkostemp(beside.data(), O_CLOEXEC);
  if (descriptor < 0) return false;
  bool done = (file.st_uid == ::geteuid() || ::fchown(descriptor, file.st_uid, static_cast<gid_t>(-1)) == 0) &&
              (::fchown(descriptor, static_cast<uid_t>(-1), file.st_gid) == 0) &&
              ::fchmod(descriptor, file.st_mode & 07777) == 0 && write_all(descriptor, text);
  done = ::close(descriptor) == 0 && done && ::rename(beside.c_str(), path_.c_str()) == 0;
  if (!done) ::unlink(beside.c_str());
  // Who has opened it before reads there what it became.
  if (done && ::fstat(descriptor_, &file) == 0 && file.st_nlink == 0) static_cast<void>(write_in_place(text));
  return done;
}

bool StatusFile::write_in_place(const std::string& text) const {
  if (regular_ && (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0)) return false;
  if (write_all(descriptor_, text)) return true;
  if (regular_) static_cast<void>(::ftruncate(descriptor_, 0));  // a part of it is of no use
  return false;
}

void StatusFile::write(const Report& report, Console& console) {
  written_ = true;
  if (descriptor_ < 0) return;
  auto json = Json::object({{"format_version", 1},
                            {"outcome", report.outcome},
                            {"exit_code", report.exit_code},
                            {"child_status", nullptr},
                            {"child_signal", nullptr},
                            {"token", nullptr},
                            {"tokens", Json::object()},
                            {"held_ms", report.held.count() / 1000},
                            {"wait_ms", report.waited.count() / 1000}});
  if (report.child_status) json["child_status"] = *report.child_status;
  if (report.child_signal != 0) json["child_signal"] = report.child_signal;
  if (report.tokens.size() == 1) json["token"] = number(report.tokens.front().second);
  for (const auto& [name, token] : report.tokens) json["tokens"][name] = number(token);
  const auto text = json.text_in_order() + "\n";
  if (of_console_) console.wait_until_written();
  if (!replace(text) && !write_in_place(text))
    console.warning(fmt::format("--status-file {} could not be written", in_quotes(path_)));
}

}  // namespace dlock::tools::run
