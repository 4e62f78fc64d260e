// How leases are given back.
#pragma once

#include "engine/context.hpp"
#include "engine/lease/late_attempts.hpp"
#include "engine/lease/lingering.hpp"
#include "engine/lease/release_request.hpp"
#include "engine/wait/handing_over.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dlock::engine {

// Why what is Lease::to_be_reopened is not released now, but by who ends its at-least time.
Error not_reopened();

// Threads: any. A lease that is released is nobody's in this process, whatever becomes of its row.
class Releaser {
 public:
  Releaser(Context& context, Lingering& lingering, LateAttempts& late_attempts, HandOver& hand_over) noexcept
      : context_(context), lingering_(lingering), late_attempts_(late_attempts), hand_over_(hand_over) {}

  Released release(const std::shared_ptr<Lease>& held, Duration timeout);

  // The first half of it, which asks nobody: what was entered is left, and its lease is nobody's from here on. Empty:
  // its row is to be freed, by the other half.
  std::optional<Released> leave(ReleaseRequest& request);
  Released free(ReleaseRequest& request, Duration timeout);

  // What became of each, in their order; or what finds that out, one at a time, within the time that it is given.
  struct Given {
    std::optional<Released> end{};
    std::function<Released(Duration)> finish{};
    bool locked = false;  // its row could not be had, which may pass: to finish may take all of its time
    bool silent = false;  // nor was there an answer, so that nothing is known of its row
    Doubt unanswered{};   // for who asks again for all of them instead
  };
  // Frees the rows of leases that were left. Those that nobody in this process waits for are freed in one statement; a
  // row that is locked holds up nobody else's.
  std::vector<Given> free_together(std::span<const ReleaseRequest> all, Duration timeout);
  // As release() does, in as few statements as possible; all of it takes at most `timeout`. In their order.
  std::vector<Released> release_each(std::span<const std::shared_ptr<Lease>> all, Duration timeout);

  // What an answer to it means.
  Released after_release(const ReleaseRequest& request, const store::Left& left);
  // It could not be released in time.
  Released release_later(const ReleaseRequest& request, const Error& why);

 private:
  Released free(ReleaseRequest& request);

  Context& context_;
  Lingering& lingering_;
  LateAttempts& late_attempts_;
  HandOver& hand_over_;
};

}  // namespace dlock::engine
