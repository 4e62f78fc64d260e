// A lock table in memory, for the engine's unit tests: its clock is BootClock, and it can be told to fail. It answers
// what these tests ask, and is no model of the real ones: those the conformance suite checks.
#pragma once

#include "engine/fake_waiter_table.hpp"
#include "store/caller_transaction.hpp"
#include "store/lock_table.hpp"
#include "store/reaper_table.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace dlock::test {

class FakeLockTable final : public store::LockTable, public store::ReaperTable {
 public:
  // What happens to the next calls, in order: the failure, and whether the question is carried out before it.
  struct Mishap {
    Failure failure;
    bool carried_out;
  };

  store::Granted acquire(const store::AcquireRequest& ask, Deadline) override {
    if (hang()) {
      const std::lock_guard guard(mutex_);
      hanging_.push_back([this, name = ask.name, owner = std::string(ask.owner), node = std::string(ask.node),
                          actor = std::string(ask.actor), lease = ask.lease, mode = ask.mode] {
        store::AcquireRequest late{name, owner, node, {}, actor, lease, {}, {}};
        late.mode = mode;
        acquire_now(late);
      });
      throw Failure(Cause::timed_out, "no answer in time", "", true);
    }
    if (instead_of_acquiring)
      if (const auto answer = instead_of_acquiring(ask)) return *answer;
    auto granted = with_mishaps([&] { return acquire_now(ask); });
    if (after_acquiring) after_acquiring();
    return granted;
  }

  std::vector<std::optional<store::Granted>> acquire_together(std::span<const store::AcquireRequest> asks,
                                                              Deadline) override {
    std::vector<std::optional<store::Granted>> answers(asks.size());
    for (std::size_t i = 0; acquires_together && i < asks.size(); ++i) {
      if (instead_of_acquiring) answers[i] = instead_of_acquiring(asks[i]);
      if (!answers[i]) answers[i] = with_mishaps([&] { return acquire_now(asks[i]); });
    }
    return answers;
  }

  // The next acquires get no answer, and are carried out by arrive(), which says who has the name then.
  void hang_acquires(int count) { to_hang_ = count; }
  std::string arrive(const std::string& name = "n") {
    const std::lock_guard guard(mutex_);
    for (const auto& late : hanging_) late();
    hanging_.clear();
    return std::string(rows_[name].owner);
  }
  std::size_t hanging() {
    const std::lock_guard guard(mutex_);
    return hanging_.size();
  }
  // The same, right after the name was freed.
  std::string free_and_arrive(const std::string& name) {
    const std::lock_guard guard(mutex_);
    free(name, std::string(rows_[name].owner), 0);
    for (const auto& late : hanging_) late();
    hanging_.clear();
    return std::string(rows_[name].owner);
  }

  store::Left leave(const store::LeaseKey& key, Deadline) override {
    return with_mishaps([&] {
      const bool was_there = free(key.name, key.owner, number(key.token));
      const auto& row = rows_[std::string(key.name)];
      return store::Left{was_there, !row.entries.empty() && row.token == number(key.token)};
    });
  }

  std::vector<std::optional<bool>> release_together(std::span<const store::LeaseKey> keys, Deadline) override {
    ++releases_together;
    return with_mishaps([&] {
      std::vector<std::optional<bool>> freed;
      for (const auto& key : keys) {
        if (row_locked) freed.emplace_back();
        else freed.emplace_back(free(key.name, key.owner, number(key.token)));
      }
      return freed;
    });
  }

  void withdraw(std::string_view name, std::string_view owner, Deadline, Mode, Token) override {
    with_mishaps([&] {
      if (withdrawals_to_fail > 0) {
        --withdrawals_to_fail;
        throw Failure(Cause::disconnected, "planned");
      }
      ++withdrawals;
      auto& row = rows_[std::string(name)];
      if (row.owner.empty()) row.freed_by = owner;
      return free(name, owner, 0);
    });
  }

  std::vector<store::Renewal> renew(std::span<const store::LeaseKey> keys, Deadline deadline) override {
    ++renewals;
    if (on_renew) on_renew(keys, deadline);
    return with_mishaps([&] {
      std::vector<store::Renewal> renewed;
      for (const auto& key : keys) {
        auto* row = mine(key);
        if (row != nullptr && !row_locked) row->expires = std::max(row->expires, later(BootClock::now(), key.lease));
        renewed.push_back(row == nullptr ? store::Renewed::lost
                          : row_locked   ? store::Renewed::not_known_yet
                                         : renewed_now());
      }
      return renewed;
    });
  }

  store::Renewal extend(const store::LeaseKey& key, Duration lease, Duration at_least, Deadline) override {
    ++extensions;
    if (before_extending) before_extending(lease);
    return with_mishaps([&]() -> store::Renewal {
      auto* row = mine(key);
      if (row == nullptr) return store::Renewed::lost;
      const auto end = later(BootClock::now(), lease);
      row->lease = lease;
      if (at_least < Duration{}) row->reopens = {};
      if (at_least > Duration{}) row->reopens = std::max(row->reopens, later(BootClock::now(), at_least));
      row->expires = std::max(row->expires, end);
      return renewed_now();
    });
  }

  store::Renewal renewed_now() const {
    if (!wanted) return store::Renewed::yes;
    return {store::Renewed::yes, Wanted{waited, wanted_mode}};
  }

  bool update_metadata(const store::LeaseKey& key, std::string_view metadata, Keep, Deadline) override {
    return with_mishaps([&] {
      auto* row = mine(key);
      if (row != nullptr) row->metadata = metadata;
      return row != nullptr;
    });
  }

  std::optional<Mode> adopt(const store::LeaseKey& from, const store::AcquireRequest& to, Deadline) override {
    const bool adopted = with_mishaps([&] {
      auto& row = rows_[std::string(from.name)];
      if (row.token != number(from.token) || (row.owner != from.owner && row.owner != to.owner)) return false;
      row.owner = to.owner;
      row.node = to.node;
      row.label = to.label;
      row.lease = to.lease;
      row.expires = std::max(row.expires, later(BootClock::now(), to.lease));
      return true;
    });
    if (after_adopting) after_adopting();
    return adopted ? std::optional(Mode::exclusive) : std::nullopt;
  }

  std::optional<Duration> lease_of_holder(const store::LeaseKey&, Deadline) override { return std::nullopt; }

  std::function<void()> before_downgrading{};
  std::optional<Token> downgrade(const store::LeaseKey& from, std::string_view new_owner, Deadline) override {
    if (before_downgrading) before_downgrading();
    return with_mishaps([&]() -> std::optional<Token> {
      auto& row = rows_[std::string(from.name)];
      if (row.owner != new_owner) {
        if (row.owner != from.owner || row.token != number(from.token)) return std::nullopt;
        row.owner = new_owner;
        ++row.token;
      }
      return Token{row.token};
    });
  }

  bool force_release(std::string_view name, Token seen, std::string_view reason, Deadline) override {
    return with_mishaps([&] {
      auto& row = rows_[std::string(name)];
      if (row.owner.empty() || row.token != number(seen)) return false;
      row.freed_by = std::exchange(row.owner, {});
      row.entries.clear();
      row.forced = true;
      row.reason = reason;
      ++row.token;
      return true;
    });
  }

  store::Busy busy(std::string_view name, Deadline deadline) override {
    return look(name, 0, deadline).free ? store::Busy::no : store::Busy::yes;
  }

  store::Availability look(std::string_view name, std::int64_t, Deadline) override {
    return with_mishaps([&] {
      ++looks;
      const auto& row = rows_[std::string(name)];
      const auto now = BootClock::now();
      const auto opens = std::max(row.reopens, row.owner.empty() ? Instant{} : row.expires);
      store::Availability availability{opens <= now, {}};
      if (!availability.free) availability.opens_in = std::chrono::ceil<Duration>(opens - now);
      if (row.expires > now) availability.owner = row.owner;
      availability.token = Token{row.token};
      return availability;
    });
  }

  // For one who would enter what its node holds.
  store::Availability look_for(const store::AcquireRequest& ask, Deadline deadline) override {
    if (before_looking) before_looking();
    auto availability = look(ask.name.text(), ask.ticket, deadline);
    const std::lock_guard guard(mutex_);
    const auto& row = rows_[ask.name.text()];
    if (ask.mode == Mode::node && !row.entries.empty() && row.node == ask.node) availability.free = true;
    return availability;
  }

  store::Blocked blocked(std::string_view name, Deadline deadline) override {
    return {!look(name, 0, deadline).free, {}};
  }
  store::Blocked blocked_for(const store::AcquireRequest& ask, Deadline deadline) override {
    if (instead_of_blocked)
      if (const auto answer = instead_of_blocked()) return *answer;
    return {!look_for(ask, deadline).free, {}};
  }
  store::RowAvailability row_availability(std::string_view, Deadline) override {
    throw Failure(Cause::rejected, "no transactions here");
  }
  void make(std::string_view, Deadline) override {}
  std::unique_ptr<store::CallerTransaction> caller_transaction(const TransactionRef&) override {
    throw Failure(Cause::rejected, "no transactions here");
  }
  std::string fence_sql(const store::LeaseKey&) const override { return {}; }

  std::optional<Holder> inspect(std::string_view name, Deadline) override {
    return with_mishaps([&]() -> std::optional<Holder> {
      const auto found = rows_.find(std::string(name));
      if (found == rows_.end()) return std::nullopt;
      Holder holder;
      holder.name = name;
      holder.owner = found->second.owner;
      holder.label = found->second.label;
      holder.node = found->second.node;
      holder.token = Token{found->second.token};
      holder.lease = found->second.lease;
      holder.state = holder.owner.empty() ? State::free : State::held;
      if (found->second.forced) holder.last_run = LastRun{{}, {}, {}, {}, Outcome::forced, found->second.reason};
      return holder;
    });
  }

  std::vector<Holder> list(std::string_view, Deadline) override { return {}; }
  Token floor(Deadline) override {
    return with_mishaps([&] { return Token{floor_}; });
  }
  Token raise_floor(Duration, Deadline) override {
    return with_mishaps([&] { return Token{floor_}; });
  }
  std::vector<store::Idle> idle(const store::Some&, Token, Duration, Deadline) override { return {}; }
  std::optional<store::Idle> idle_row(std::string_view, Deadline) override { return std::nullopt; }
  Token raise_floor_to(Token, Deadline) override { return Token{floor_}; }
  std::size_t remove_idle(std::span<const store::Idle>, Deadline) override { return 0; }

  std::vector<store::Abandoned> abandoned(const store::Some& some, Deadline) override {
    return with_mishaps([&] {
      std::vector<store::Abandoned> found;
      for (const auto& [name, row] : rows_) {
        if (name <= some.after || row.owner.empty() || row.expires > BootClock::now()) continue;
        const bool shared = name == shared_name;
        found.push_back({name, shared ? "" : "replica-0", row.label, Token{row.token}, {}, 0});
      }
      return found;
    });
  }

  bool settle(std::string_view name, Token token, std::string_view settler, Deadline) override {
    return with_mishaps([&] {
      if (before_settling) before_settling(name);
      if (lost_settles > 0) {
        if (--lost_settles == 0 && away_after_settles) away = true;
        throw Failure(Cause::disconnected, "the answer is lost", "", true);
      }
      if (unanswered_settles == 0 && locked_settles > 0) {
        --locked_settles;
        throw Failure(Cause::locked, "planned");
      }
      auto& row = rows_[std::string(name)];
      if (row.owner.empty() || row.token != number(token) || row.expires > BootClock::now()) return false;
      row.owner.clear();
      row.entries.clear();
      row.freed_by = settler;
      row.settled = ++row.token;
      if (unanswered_settles == 0) return true;
      if (--unanswered_settles == 0 && away_after_settles) away = true;
      throw Failure(Cause::disconnected, "the answer is lost", "", true);
    });
  }

  store::Settled settled(std::string_view name, Token token, std::string_view settler, Deadline) override {
    return with_mishaps([&] {
      const auto& row = rows_[std::string(name)];
      if (row.settled == number(token) + 1)
        return row.freed_by == settler ? store::Settled::by_asker : store::Settled::unclear;
      if (!row.owner.empty() && row.token == number(token)) return store::Settled::still_held;
      return row.token <= number(token) + 1 ? store::Settled::not_by_asker : store::Settled::unclear;
    });
  }

  bool begin_reaping(std::string_view, std::string_view, Duration, Duration, Deadline) override {
    return with_mishaps([&] { return !reaped_elsewhere; }, false);
  }
  void end_reaping(std::string_view, Duration, Deadline) override {}
  std::vector<store::DeadHolder> dead_holders_of(std::string_view name, std::string_view after_owner, std::size_t limit,
                                                 Deadline) override {
    return with_mishaps([&] {
      std::vector<store::DeadHolder> found;
      if (!rows_[std::string(name)].owner.empty()) return found;
      for (const auto& one : dead)
        if (found.size() < limit && one.lease.name == name && one.owner > after_owner && one.abandoned)
          found.push_back(one);
      return found;
    });
  }
  struct Same {
    const store::DeadHolder& one;
    bool operator()(const store::DeadHolder& other) const {
      return one.lease.name == other.lease.name && one.owner == other.owner && one.expires_at == other.expires_at;
    }
  };
  std::vector<store::DeadHolder> dead_holders(const store::Some& some, std::string_view after_owner,
                                              Deadline) override {
    return with_mishaps([&] {
      std::vector<store::DeadHolder> found;
      for (const auto& one : dead)
        if (!alive && found.size() < some.limit && one.lease.name.starts_with(some.prefix) &&
            std::tie(one.lease.name, one.owner) > std::make_tuple(some.after, after_owner))
          found.push_back(one);
      return found;
    });
  }
  // What happens to it, first come first: see `forgets`.
  bool forget_holder(const store::DeadHolder& one, Deadline) override {
    return with_mishaps([&] {
      auto what = Forgets::done;
      if (!forgets.empty()) {
        what = forgets.front();
        forgets.erase(forgets.begin());
      }
      if (what == Forgets::locked) throw Failure(Cause::locked, "planned");
      const bool removed = what != Forgets::never_came && std::erase_if(dead, Same{one}) > 0;
      if (what != Forgets::done) throw Failure(Cause::disconnected, "the answer is lost", "", true);
      return removed;
    });
  }
  bool has_holder(const store::DeadHolder& one, Deadline) override {
    return with_mishaps([&] {
      return std::ranges::any_of(
          dead, [&](const auto& other) { return other.lease.name == one.lease.name && other.owner == one.owner; });
    });
  }
  void forget_holders(std::span<const store::DeadHolder> all, Deadline) override {
    with_mishaps([&] {
      for (const auto& one : all) std::erase_if(dead, Same{one});
      return true;
    });
  }
  store::HistoryPiece count_history(std::size_t, std::int64_t, std::size_t, Deadline) override { return {}; }
  std::size_t trim_history(std::size_t, std::size_t, Deadline) override { return 0; }
  std::unique_ptr<dialects::Listener> open_listener(Deadline) override {
    return make_listener ? make_listener() : nullptr;
  }
  FakeWaiterTable& waiting() noexcept override { return waiting_; }
  store::ReaperTable& reaping() noexcept override { return *this; }
  void on_reconnect(Reconnected) override {}
  std::vector<std::string> weaknesses(Deadline) override { return {}; }
  Duration smallest_margin() const noexcept override { return std::chrono::milliseconds{1}; }
  Duration round_trip() const noexcept override { return trip.load(); }
  RemovalPace removal_pace() const noexcept override { return {1000, 0.5}; }

  void add_mishap(Cause cause, bool may_have_run, bool carried_out) {
    const std::lock_guard guard(mutex_);
    mishaps_.push_back({Failure(cause, "a mishap", "", may_have_run), carried_out});
  }
  void set_floor(std::int64_t floor) {
    const std::lock_guard guard(mutex_);
    floor_ = floor;
  }
  Instant expires(const std::string& name) {
    const std::lock_guard guard(mutex_);
    return rows_[name].expires;
  }
  std::string metadata_of(const std::string& name) {
    const std::lock_guard guard(mutex_);
    return rows_[name].metadata;
  }
  std::string owner_of(const std::string& name) {
    const std::lock_guard guard(mutex_);
    return rows_[name].owner;
  }

  std::atomic<int> renewals{0}, extensions{0}, looks{0}, withdrawals{0}, releases_together{0};
  std::atomic<int> withdrawals_to_fail{0};  // the next ones
  std::function<void(std::span<const store::LeaseKey>, Deadline)>
      on_renew{};                                          // before anything happens; set before use
  std::function<void(Duration lease)> before_extending{};  // likewise
  // After everything has happened, and before it is answered; likewise.
  std::function<void()> after_acquiring{}, after_adopting{};
  // These may answer in the place of the table, or throw; likewise.
  std::function<std::optional<store::Granted>(const store::AcquireRequest&)> instead_of_acquiring{};
  std::function<std::optional<store::Blocked>()> instead_of_blocked{};
  std::function<void()> before_looking{};
  std::function<void(std::string_view name)> before_settling{};
  std::function<std::unique_ptr<dialects::Listener>()> make_listener{};  // set before use
  std::atomic<Duration> trip{Duration{}};
  std::atomic<bool> row_locked{false};
  std::atomic<bool> acquires_together{false};  // or else each is asked for alone
  std::atomic<bool> wanted{false};             // what a renewal answers beside; and then:
  std::atomic<Duration> waited{Duration{}};
  std::atomic<Mode> wanted_mode{Mode::exclusive};
  std::atomic<bool> reaped_elsewhere{false};
  std::atomic<int> unanswered_settles{0};       // so many are carried out without an answer
  std::atomic<int> lost_settles{0};             // so many are not carried out, and have no answer
  std::atomic<int> locked_settles{0};           // so many find their row locked, after those
  std::atomic<bool> away_after_settles{false};  // the last of them is followed by that
  std::vector<store::DeadHolder> dead{};        // in the order of names and owners; read where nothing else runs
  bool alive = false;                           // they go on: none of them is dead
  std::string shared_name{};                    // the lock of several
  enum class Forgets { done, unanswered, never_came, locked };
  std::vector<Forgets> forgets{};               // what becomes of the next ones
  std::atomic<bool> away{false};                // every call fails as if nobody listened
  std::atomic<bool> away_after_mishaps{false};  // the last mishap is followed by that

 private:
  struct Row {
    std::string owner, node, label, freed_by, metadata, reason;
    bool forced = false;  // since its last grant
    std::int64_t settled = 0;
    std::map<std::string, std::string>
        entries;  // of a node: their owners, and the actor of each; the row's owner is the first's
    std::int64_t token = 0;
    Instant expires{}, reopens{};
    Duration lease{};
  };

  template <class Work>
  auto with_mishaps(Work work, bool can_fail = true) -> decltype(work()) {
    const std::lock_guard guard(mutex_);
    if (away) throw Failure(Cause::refused, "nobody listens");
    if (mishaps_.empty() || !can_fail) return work();
    const auto mishap = mishaps_.front();
    mishaps_.pop_front();
    if (mishaps_.empty() && away_after_mishaps) away = true;
    if (mishap.carried_out) static_cast<void>(work());
    throw mishap.failure;
  }

  bool hang() {
    int left = to_hang_;
    while (left > 0 && !to_hang_.compare_exchange_weak(left, left - 1)) {}
    return left > 0;
  }

  store::Granted acquire_now(const store::AcquireRequest& ask) {
    auto& row = rows_[ask.name.text()];
    const auto now = BootClock::now();
    const bool live = !row.owner.empty() && row.expires > now;
    const auto ours = [&](const auto& entry) { return entry.second.substr(0, 16) == ask.actor.substr(0, 16); };
    const bool enters = live && ask.mode == Mode::node && !row.entries.empty() && row.node == ask.node;
    const bool replaces = enters && ask.alone && std::ranges::none_of(row.entries, ours);
    if (row.owner == ask.owner || (enters && !replaces)) {  // once more: nothing is taken away
      if (enters) row.entries[std::string(ask.owner)] = ask.actor;
      row.expires = std::max(row.expires, later(now, ask.lease));
      row.lease = std::max(row.lease, ask.lease);
      return {Token{row.token}, false};
    }
    if (!replaces && (row.reopens > now || live || row.freed_by == ask.owner)) return {};
    row.token = std::max(row.token, floor_) + 1;
    row.reopens = ask.at_least > Duration{} ? later(now, ask.at_least) : Instant{};
    row.entries.clear();
    if (ask.mode == Mode::node) row.entries[std::string(ask.owner)] = ask.actor;
    row.owner = ask.owner;
    row.freed_by.clear();
    row.forced = false;
    row.metadata.clear();
    row.node = ask.node;
    row.label = ask.label;
    row.lease = ask.lease;
    row.expires = later(now, ask.lease);
    return {Token{row.token}, false};
  }

  Row* mine(const store::LeaseKey& key) {
    auto& row = rows_[std::string(key.name)];
    const bool in = row.entries.empty() ? row.owner == key.owner : row.entries.contains(std::string(key.owner));
    return in && row.token == number(key.token) ? &row : nullptr;
  }

  bool free(std::string_view name, std::string_view owner, std::int64_t token) {
    auto& row = rows_[std::string(name)];
    if (token != 0 && row.token != token) return false;
    const bool was_in = row.entries.erase(std::string(owner)) > 0;
    if (!row.entries.empty()) return was_in;
    if (!was_in && row.owner != owner) return false;
    row.owner.clear();
    row.freed_by = owner;
    row.expires = BootClock::now();
    return true;
  }

  std::mutex mutex_;
  std::map<std::string, Row> rows_;
  std::deque<Mishap> mishaps_;
  std::atomic<int> to_hang_{0};
  std::vector<std::function<void()>> hanging_;
  std::int64_t floor_ = 0;
  FakeWaiterTable waiting_;
};

}  // namespace dlock::test
