// What a --status-file says of a command.
#pragma once

#include "tools/shared/console.hpp"

#include <dlock/duration.hpp>
#include <dlock/token.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlock::tools::run {

// What became of a run.
struct Report {
  // not_obtained, unavailable, interrupted (while waiting), failed, not_executed; done, signalled, max_runtime, lost.
  std::string outcome;
  int exit_code = 0;
  std::optional<int> child_status{};  // 0 to 255, or 128 + child_signal
  int child_signal = 0;
  std::vector<std::pair<std::string, Token>> tokens{};  // of each name
  Duration held{}, waited{};
};

// The file, or nothing. Others may write to the same one: a regular file is replaced as a whole, by renaming. Where
// that cannot be done, it is written where it is; so is what is none: a pipe, a link and what it leads to.
// Threads: one.
class StatusFile {
 public:
  StatusFile() = default;
  // Opens and empties it, so that a wrong path is known before anything else is done, and what an earlier run has
  // written is not taken for this one's. What standard output or error is written to is not emptied, and written
  // through them. Throws UsageError.
  explicit StatusFile(const std::string& path);
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  void write(const Report& report, Console& console);
  bool written() const noexcept { return written_; }

 private:
  bool replace(const std::string& text) const;
  bool write_in_place(const std::string& text) const;

  std::string path_;
  int descriptor_ = -1;
  bool regular_ = false, of_console_ = false, written_ = false;
};

}  // namespace dlock::tools::run
