// When the table is asked whether it keeps a history, and what is believed meanwhile.
#include "engine/lease/history_probe.hpp"

namespace dlock::engine {
namespace {

// A history that is made while engines run has the grants that are passed on in memory from so long after.
constexpr Duration longest_unaware = std::chrono::seconds{1};

}  // namespace

bool HistoryProbe::keeps(Instant deadline) {
  const auto now = BootClock::now();
  const auto until = context_.shortly(now);
  auto asked = asked_.load();
  if (now - Instant{BootClock::duration{asked}} < longest_unaware) return kept_.load();
  if (deadline - now < 2 * (until - now)) return true;
  if (!asked_.compare_exchange_strong(asked, now.time_since_epoch().count())) return kept_.load();
  bool kept = true;
  kept_.store(kept);  // for those who come meanwhile
  try {
    kept = context_.table->keeps_history(until);
  } catch (const Failure&) {  // the hand-over tells what is wrong, if it still is
  }
  kept_.store(kept);
  return kept;
}

}  // namespace dlock::engine
