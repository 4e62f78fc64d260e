// Decides who may go along with the leader of a batch: how many of each kind, and with how much time of their own. A
// leader who has little time takes nobody.
#pragma once

#include "store/batch_window.hpp"
#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace dlock::store {

// Threads: as a value.
class BatchRoom {
 public:
  static constexpr std::size_t kinds = 2;

  // For nobody.
  BatchRoom() = default;
  // Of a leader of that kind who leaves now, with time until `deadline`, of which one request may take until
  // `promptly`. `most`: of each kind, the leader among them.
  BatchRoom(std::size_t kind, const Pace& pace, const Deadline& deadline, Instant promptly, std::size_t most,
            Instant now) noexcept {
    const auto left = deadline.at() - now;
    if (left < shortest_batch || deadline.stopped()) return;
    of_kind_[kind] = {most - 1, deadline.at() - left / 4};
    // Of another kind are those who have another time than the leader: less, or so much more that it would cost them an
    // answer that is slow but comes. So it leads them only where it can wait until the batch hangs, and nobody may tell
    // it to stop. Where commits take 15 ms a try cannot, and leads its own kind (docs/performance.md).
    const auto enough = std::max<BootClock::duration>(pace.hung, shortest_batch);
    if (pace.shared && promptly - now >= enough && !deadline.stop().stop_possible())
      of_kind_[1 - kind] = {planted("kinds_share_room") ? 0 : most, later(now, enough)};
  }

  // Whether there is room for one of that kind, who waits until then.
  bool admits(std::size_t kind, Instant deadline) const noexcept {
    return of_kind_[kind].requests > 0 && deadline >= of_kind_[kind].latest;
  }
  void take(std::size_t kind) noexcept { --of_kind_[kind].requests; }

 private:
  // A leader with less time than this takes nobody along: it would have to come back before the answer.
  static constexpr std::chrono::milliseconds shortest_batch{100};

  struct Kind {
    std::size_t requests = 0;
    Instant latest{};  // until when they must be able to wait
  };
  std::array<Kind, kinds> of_kind_{};
};

}  // namespace dlock::store
