// How a write is told before its commit can be seen, and how long it is looked for.
#include "listener.hpp"

#include "connection.hpp"
#include "dialects/interrupt.hpp"
#include "notices.hpp"
#include "types/process.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace dlock::dialects::sqlite {
namespace {

using std::chrono::microseconds;

// Between the write and the commit is a flush to the disk: microseconds in memory, and seconds on a disk in trouble.
constexpr BootClock::duration first_pause = microseconds{200}, busy_pause = microseconds{2000},
                              longest_pause = microseconds{20'000};
constexpr BootClock::duration longest_flush = std::chrono::seconds{2};

class FileListener final : public Listener {
 public:
  FileListener(const File& file, Deadline deadline)
      : notices_(file.path), connection_(std::make_unique<FileConnection>(file, false, deadline)) {
    seen_ = version(deadline);
  }
  ~FileListener() override {
    if (fork_guard_.forked()) static_cast<void>(connection_.release());  // it is the parent's
  }
  FileListener(const FileListener&) = delete;
  FileListener& operator=(const FileListener&) = delete;

  Notification wait(std::span<const AwaitedLock>, Deadline until) override {
    for (;;) {
      if (changed()) {
        // What was written since may be another commit. If nothing was, there is hardly one to look for; but a notice
        // may have come with that of this commit, and its own be on the way.
        if (notices_.take()) look_closely(first_pause);
        else pause_ = longest_pause;
        return {true, {}};
      }
      const auto now = BootClock::now();
      if (until.passed()) return {};
      if (now >= give_up_) {
        switch (interrupt_.wait(notices_.descriptor(), POLLIN, until)) {
          case Interrupt::Ended::interrupted:
          case Interrupt::Ended::late: return {};
          case Interrupt::Ended::ready: break;
        }
        if (notices_.take()) look_closely(first_pause);
        continue;
      }
      // However fast somebody writes, it is looked at only so often.
      const bool patient = pause_ > busy_pause;
      const auto next = until.no_later_than(later(now, pause_));
      if (interrupt_.wait(patient ? notices_.descriptor() : -1, POLLIN, next) == Interrupt::Ended::interrupted)
        return {};
      pause_ = std::min(pause_ + pause_ / 2, longest_pause);
      if (notices_.take()) look_closely(patient ? first_pause : std::min(pause_, busy_pause));
    }
  }

  void interrupt() noexcept override { interrupt_.raise(); }

 private:
  std::int64_t version(Deadline deadline) {
    const auto& answer = connection_->run(data_version_, {}, deadline);
    return answer.integer(0, 0);
  }

  void look_closely(BootClock::duration pause) noexcept {
    give_up_ = later(BootClock::now(), longest_flush);
    pause_ = pause;
  }

  // Whether somebody has committed since this was last asked.
  bool changed() {
    try {
      const auto now = version(BootClock::now());
      return std::exchange(seen_, now) != now;
    } catch (const Failure& failure) {
      // Somebody writes, without a log, and will be through before long.
      if (failure.cause() != Cause::locked) throw;
      give_up_ = std::max(give_up_, later(BootClock::now(), longest_pause));
      return false;
    }
  }

  const ForkGuard fork_guard_;
  const Statement data_version_{"data_version", "PRAGMA data_version", {}, Marker::question, {}, {}, 0};
  Interrupt interrupt_;
  Notices notices_;
  std::unique_ptr<FileConnection> connection_;
  std::int64_t seen_ = 0;
  Instant give_up_ = Instant::min();  // until then a commit is looked for
  BootClock::duration pause_ = first_pause;
};

}  // namespace

std::unique_ptr<Listener> open_listener(const File& file, Deadline deadline) {
  if (!network_file_system(file.path).empty()) return nullptr;
  return std::make_unique<FileListener>(file, deadline);
}

}  // namespace dlock::dialects::sqlite
