// This file knows how requests of many threads travel together: who would have to wait for a connection anyway goes along
// with the next one that gets it.
#pragma once

#include "types/clock.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::store {

// The one in front (the leader) waits for its turn, while all that come after it queue up. When it has it, it takes along
// those that are there, at most one for each name, and the next of the rest leads. There is no timer: nobody waits for
// anything but its turn. Those that travel together are sent by the leader's thread, as long as the leader's deadline
// allows; each of the others is back by its own, and who has much less time than the leader is left for the next one.
//
// Trip says what is sent, and how:
//   View     a request, as its caller has it;  Kept  a copy of one, with view();  Result  its answer;  Turn  a turn
//   std::string_view name(const View&)
//   Turn turn(Deadline)                                         waits for it; throws Failure
//   bool is_open(const Turn&)                                   false: what comes with it is best sent alone
//   Result alone(const View&, Turn, Deadline)                   throws Failure
//   std::vector<std::optional<Result>> together(std::span<const View>, Turn, Deadline)
//                                                               in the order of names; an empty one has to be sent alone
//
// Threads: any. Fails: as the trip does; a failure that is about one of many alone makes each of them be sent alone.
template <class Trip>
class Convoy {
 public:
  using View = typename Trip::View;
  using Result = typename Trip::Result;

  // `most`: so many requests at most travel together.
  Convoy(Trip trip, std::size_t most) : trip_(std::move(trip)), most_(most) {}
  Convoy(const Convoy&) = delete;
  Convoy& operator=(const Convoy&) = delete;

  // For those who have to wait for their turn.
  Result send(const View& view, Deadline deadline) {
    const auto rider = enlist(view, deadline);
    if (!rider || wait(*rider)) return lead(view, deadline);
    if (rider->defect) std::rethrow_exception(rider->defect);
    if (rider->failure) throw same(*rider->failure);
    if (rider->result) return std::move(*rider->result);
    return alone(view, deadline);
  }

  // How many wait to be taken along, and whether one waits in front of them.
  std::size_t queued() const {
    const std::lock_guard guard(mutex_);
    return queue_.size();
  }
  bool led() const {
    const std::lock_guard guard(mutex_);
    return led_;
  }

 private:
  // A leader with less time than this takes nobody along: it would have to come back before the answer.
  static constexpr std::chrono::milliseconds shortest_flight{250};

  // One that waits. What it asks is copied, since its caller may go before the answer comes.
  struct Rider {
    Rider(const View& view, Deadline its_deadline) : kept(view), deadline(its_deadline) {}
    const typename Trip::Kept kept;
    const Deadline deadline;
    std::condition_variable called;
    std::mutex mutex;
    // Guarded by mutex; queued is left with the convoy's mutex held as well, which is taken first:
    enum class State { queued, leads, flies, landed } state = State::queued;
    std::optional<Result> result;
    std::optional<Failure> failure;
    std::exception_ptr defect;  // none of the three: to be sent alone
  };
  using State = typename Rider::State;
  using Party = std::vector<std::shared_ptr<Rider>>;

  static std::string_view name_of(const Rider& rider) { return Trip::name(rider.kept.view()); }

  // Empty: there is nobody in front, and the caller leads.
  std::shared_ptr<Rider> enlist(const View& view, Deadline deadline) {
    {
      const std::lock_guard guard(mutex_);
      if (!std::exchange(led_, true)) return nullptr;
    }
    auto rider = std::make_shared<Rider>(view, deadline);
    const std::lock_guard guard(mutex_);
    if (!std::exchange(led_, true)) return nullptr;
    queue_.push_back(rider);
    return rider;
  }

  // True: it leads now. False: it was taken along, and is back.
  bool wait(Rider& rider) {
    // Ends only after what is locked below is free again.
    const std::stop_callback stopped(rider.deadline.stop(), [&] {
      const std::lock_guard guard(rider.mutex);
      rider.called.notify_one();
    });
    {
      std::unique_lock guard(rider.mutex);
      const auto there = [&] { return rider.state == State::leads || rider.state == State::landed; };
      rider.called.wait_until(guard, rider.deadline.at(), [&] { return there() || rider.deadline.stopped(); });
      if (there()) return rider.state == State::leads;
    }
    const std::lock_guard all(mutex_);
    const std::lock_guard guard(rider.mutex);
    switch (rider.state) {
      case State::leads: return true;
      case State::landed: return false;
      case State::flies: throw Failure(Cause::timed_out, "no answer in time, to many requests in one", {}, true);
      case State::queued: break;
    }
    std::erase_if(queue_, [&](const auto& other) { return other.get() == &rider; });
    throw Failure(Cause::timed_out, "no connection of the pool could be had in time, for the requests before this one "
                                    "(EngineOptions::connections)");
  }

  // Hands the lead to the first in the queue, however the leader ends.
  class Lead {
   public:
    explicit Lead(Convoy& convoy) : convoy_(convoy) {}
    ~Lead() {
      if (!given_) pass_on({});
    }
    Lead(const Lead&) = delete;
    Lead& operator=(const Lead&) = delete;

    // Takes along who can wait until `latest`.
    Party gather(std::string_view own_name, Instant latest) {
      Party party;
      party.reserve(convoy_.most_ - 1);
      pass_on({&party, own_name, latest});
      return party;
    }
    void pass_on() noexcept { pass_on({}); }

   private:
    struct Seats {
      Party* party = nullptr;
      std::string_view own_name{};
      Instant latest{};
    };

    void pass_on(const Seats& seats) noexcept {
      std::shared_ptr<Rider> next;
      {
        const std::lock_guard guard(convoy_.mutex_);
        if (seats.party != nullptr) convoy_.board(*seats.party, seats.own_name, seats.latest);
        if (convoy_.queue_.empty()) {
          convoy_.led_ = false;
        } else {
          next = std::move(convoy_.queue_.front());
          convoy_.queue_.pop_front();
          const std::lock_guard own(next->mutex);
          next->state = State::leads;
        }
        given_ = true;
      }
      if (next) next->called.notify_one();
    }

    Convoy& convoy_;
    bool given_ = false;
  };

  // With mutex_ held: as many of the queue as there is room for, ordered by name; those whose name is there stay.
  void board(Party& party, std::string_view own_name, Instant latest) noexcept {
    auto rest = queue_.begin();
    for (auto& rider : queue_) {
      const auto name = name_of(*rider);
      const auto before = [](const auto& other, std::string_view key) { return name_of(*other) < key; };
      const auto place = planted("convoy_unordered") ? party.end()
                                                     : std::lower_bound(party.begin(), party.end(), name, before);
      if (party.size() + 1 >= most_ || rider->deadline.at() < latest || name == own_name ||
          (place != party.end() && name_of(**place) == name)) {
        if (&*rest != &rider) *rest = std::move(rider);
        ++rest;
        continue;
      }
      {
        const std::lock_guard own(rider->mutex);
        rider->state = State::flies;
      }
      party.insert(place, std::move(rider));  // there is room reserved
    }
    queue_.erase(rest, queue_.end());
  }

  Result lead(const View& view, Deadline deadline) {
    Lead lead(*this);
    auto turn = trip_.turn(deadline);
    Party party;
    const auto left = deadline.at() - BootClock::now();
    if (trip_.is_open(turn) && left >= shortest_flight) party = lead.gather(Trip::name(view), deadline.at() - left / 4);
    else lead.pass_on();
    if (party.empty()) return trip_.alone(view, std::move(turn), deadline);
    const auto own = std::lower_bound(party.begin(), party.end(), Trip::name(view), [](const auto& rider, auto name) {
      return name_of(*rider) < name;
    });
    auto result = fly(view, static_cast<std::size_t>(own - party.begin()), party, std::move(turn), deadline);
    return result ? std::move(*result) : alone(view, deadline);
  }

  // Sends the view and the party, in the order of names, the view at `own`; every rider gets its answer.
  std::optional<Result> fly(const View& view, std::size_t own, const Party& party, typename Trip::Turn turn,
                            Deadline deadline) {
    std::vector<std::optional<Result>> results;
    try {
      std::vector<View> views;
      views.reserve(party.size() + 1);
      for (const auto& rider : party) {
        if (views.size() == own) views.push_back(view);
        views.push_back(rider->kept.view());
      }
      if (views.size() == own) views.push_back(view);
      results = trip_.together(views, std::move(turn), deadline);
    } catch (const Failure& failure) {
      if (!may_be_of_one(failure)) {
        for (const auto& rider : party) land(*rider, [&] { rider->failure.emplace(same(failure)); });
        throw;
      }
      results.assign(party.size() + 1, std::nullopt);
    } catch (...) {
      for (const auto& rider : party) land(*rider, [&] { rider->defect = std::current_exception(); });
      throw;
    }
    std::size_t at = 0;
    for (const auto& rider : party) {
      if (at == own) ++at;
      land(*rider, [&] { rider->result = std::move(results[at]); });
      ++at;
    }
    return std::move(results[own]);
  }

  static bool may_be_of_one(const Failure& failure) noexcept {
    return !failure.may_have_run() && (failure.cause() == Cause::locked || failure.cause() == Cause::rejected);
  }

  // Threads do not share an exception: each gets one that was made for it.
  static Failure same(const Failure& failure) {
    return {failure.cause(), std::string(failure.what()), failure.code(), failure.may_have_run()};
  }

  template <class Fill>
  static void land(Rider& rider, Fill fill) {
    {
      const std::lock_guard guard(rider.mutex);
      fill();
      rider.state = Rider::State::landed;
    }
    rider.called.notify_one();
  }

  Result alone(const View& view, Deadline deadline) { return trip_.alone(view, trip_.turn(deadline), deadline); }

  Trip trip_;
  const std::size_t most_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  bool led_ = false;  // somebody is in front; else the queue is empty
  std::deque<std::shared_ptr<Rider>> queue_;
};

}  // namespace dlock::store
