// Releases all that an engine holds, whoever has it.
#include "engine/core.hpp"
#include "engine/lease/releasing.hpp"
#include "engine/retry.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

namespace dlock {
inline namespace v0 {

namespace {

// To leave a node's row takes two statements, which may have to be prepared.
constexpr int trips_of_a_release = 8;

}  // namespace

using engine::Lease;

// Threads: one. Once it is taken a lease is nobody's here, whatever becomes of its row.
class Core::ReleaseOfAll {
 public:
  ReleaseOfAll(Core& core, Instant until) : core_(core), until_(until) {}

  Engine::ReleasedAll operator()() {
    take();
    send_together();
    send_alone();
    core_.let_nothing_linger(until_);
    return released_;
  }

 private:
  void take() {
    auto all = core_.timer_.watched();
    taken_.reserve(all.size());
    alone_.reserve(all.size());
    for (auto& held : all) {
      if (!core_.entries_.take(held)) continue;
      const bool was_lost = !held->let_go();
      taken_.push_back({held, false, was_lost, false});  // there is room reserved
      core_.tell_if_lost(held);
      core_.forget(held);
      try {
        core_.expect_late_attempts(*held);
      } catch (const std::exception&) {  // out of memory: such an attempt ends with its lease
      }
      if (!was_lost && !planted("release_all_in_silence")) core_.events_->signal_end(held);
    }
    std::sort(taken_.begin(), taken_.end(),
              [](const Releasing& one, const Releasing& other) { return one.held->name() < other.held->name(); });
  }

  // Plain leases, each name once: of two leases of one name one is another's by now.
  void send_together() {
    const std::size_t most = core_.options_.combine;
    std::vector<Releasing> batch;
    for (auto& one : taken_) {
      const bool again = !batch.empty() && batch.back().held->name() == one.held->name();
      if (most < 2 || again || one.held->mode() != Mode::exclusive) {
        alone_.push_back(std::move(one));
        continue;
      }
      batch.push_back(std::move(one));
      if (batch.size() == most) send(batch);
    }
    if (!batch.empty()) send(batch);
  }

  void send(std::vector<Releasing>& batch) {
    std::vector<store::LeaseKey> keys;
    keys.reserve(batch.size());
    for (const auto& one : batch) keys.push_back(one.held->key());
    bool in_doubt = false;
    try {
      const auto freed = core_.retry(until_, {}, in_doubt,
                                     [&](Deadline deadline) { return core_.table_->release_together(keys, deadline); });
      for (std::size_t i = 0; i < batch.size(); ++i) {
        batch[i].in_doubt = in_doubt;
        if (freed[i]) end(batch[i], core_.after_release(batch[i].held, {*freed[i], {}}, batch[i].was_lost, in_doubt));
        else alone_.push_back(std::move(batch[i]));
      }
    } catch (const Error& error) {
      for (const auto& one : batch) end(one, core_.release_later(one.held, one.was_lost, error));
    }
    batch.clear();
  }

  // Each within its share of what is left of the time, if that is enough for an answer: a row that stays locked takes
  // little from the others.
  void send_alone() {
    const auto least = core_.within(std::chrono::milliseconds{50}, trips_of_a_release);
    for (std::size_t i = 0; i < alone_.size(); ++i) {
      const auto now = BootClock::now();
      const auto share =
          std::chrono::floor<Duration>(std::max(until_, now) - now) / static_cast<Duration::rep>(alone_.size() - i);
      send(alone_[i], std::min(until_, later(now, std::max<Duration>(share, least))));
    }
  }

  void send(const Releasing& one, Instant until) {
    bool in_doubt = one.in_doubt;
    try {
      const auto left = core_.retry(until, {}, in_doubt,
                                    [&](Deadline deadline) { return core_.table_->leave(one.held->key(), deadline); });
      end(one, core_.after_release(one.held, left, one.was_lost, in_doubt));
    } catch (const Error& error) { end(one, core_.release_later(one.held, one.was_lost, error)); }
  }

  void end(const Releasing& one, Released released) {
    core_.entries_.became(one.held, released);
    core_.queues_->wake_head(one.held->name());
    switch (released) {
      case Released::freed: ++released_.freed; break;
      case Released::still_held: ++released_.still_held; break;
      case Released::was_lost: ++released_.was_lost; break;
      case Released::unconfirmed: ++released_.unconfirmed; break;
    }
  }

  Core& core_;
  const Instant until_;
  std::vector<Releasing> taken_, alone_;
  Engine::ReleasedAll released_;
};

Engine::ReleasedAll Core::release_all(Duration timeout) {
  return ReleaseOfAll(*this, later(BootClock::now(), timeout))();
}

}  // namespace v0
}  // namespace dlock
