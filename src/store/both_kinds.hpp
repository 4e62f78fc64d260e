// How releases and acquires of free names travel together: one request, one commit.
#pragma once

#include "store/request_kinds.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace dlock::store {

// No name is in one batch twice, so that none is released and acquired by one commit. Nobody in it waits for a row: who
// has released something and waited for what another engine has released could do so for ever.
struct Combining::Both {
  using View = EitherRequest;
  using Kept = KeptEitherRequest;
  // What became of a release, or of an acquire: none where it is to be asked for among acquires alone.
  struct Result {
    bool freed = false;
    std::optional<Granted> granted{};
  };
  using Turn = Pool::Loan;
  Lane* lane;
  Releases releases{lane};
  Acquires acquires{lane};

  static const LeaseKey* key(const View& view) noexcept { return std::get_if<LeaseKey>(&view); }
  static std::string_view name(const View& view) {
    return key(view) != nullptr ? Releases::name(*key(view)) : Acquires::name(std::get<AcquireRequest>(view));
  }
  static std::size_t kind(const View& view) noexcept { return view.index(); }
  Turn turn(Deadline deadline) const { return lane->pool.turn(deadline); }
  static bool is_open(const Turn& turn) { return turn.is_open(); }
  Failure no_turn() const { return lane->pool.no_turn(); }

  Result alone(const View& view, Turn turn, Deadline deadline) const {
    if (key(view) != nullptr) return {releases.alone(*key(view), std::move(turn), deadline), {}};
    return {false, acquires.alone(std::get<AcquireRequest>(view), std::move(turn), deadline)};
  }

  std::vector<std::optional<Result>> together(std::span<const View> views, Turn turn, Deadline deadline) const {
    std::vector<LeaseKey> keys;
    std::vector<AcquireRequest> asks;
    for (const auto& view : views) {
      if (key(view) != nullptr) keys.push_back(*key(view));
      else asks.push_back(std::get<AcquireRequest>(view));
    }
    std::vector<std::optional<bool>> freed;
    std::vector<std::optional<Granted>> granted;
    const bool both = !keys.empty() && !asks.empty();
    if (both) std::tie(freed, granted) = in_one_commit(keys, asks, std::move(turn), deadline);
    else if (asks.empty()) freed = releases.together(keys, std::move(turn), deadline);
    else granted = acquires.together(asks, std::move(turn), deadline);
    std::vector<std::optional<Result>> all(views.size());
    auto next_freed = freed.begin();
    auto next_granted = granted.begin();
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (key(views[i]) != nullptr) {
        if (const auto& one = *next_freed++) all[i] = Result{*one, {}};
      } else if (const auto& one = *next_granted++; one || both) {
        all[i] = Result{false, one};
      }
    }
    return all;
  }
  static bool may_be_of_one(const Failure& failure) noexcept { return Releases::may_be_of_one(failure); }
  static bool leaves_open(const Result& result) noexcept {
    return result.granted && Acquires::leaves_open(*result.granted);
  }

 private:
  using Told = std::pair<std::vector<std::optional<bool>>, std::vector<std::optional<Granted>>>;

  // Where the commit is undone, the releases follow by themselves, and nothing is told of the acquires: what is wrong
  // with one of those is no concern of a release.
  Told in_one_commit(std::span<const LeaseKey> keys, std::span<const AcquireRequest> asks, Turn turn,
                     Deadline deadline) const {
    bool wrote = false;
    try {
      return turn.use(deadline, [&](dialects::Connection& connection, Deadline until) {
        const auto begun = BootClock::now();
        Told told{{}, std::vector<std::optional<Granted>>(asks.size())};
        const auto ask_rows = Acquires::rows_of(asks);
        const auto* const answer = run_both(connection, rows_of(keys), ask_rows, until);
        wrote = answer != nullptr;
        if (wrote && believe(*answer, keys, asks, told)) {
          lane->slow_commits.wrote(BootClock::now() - begun, keys.size() + asks.size());
          return told;
        }
        told.first = releases.told(keys, releases.freed_by(connection, keys, until, wrote));
        if (answer == nullptr) return told;
        const auto tokens = numbers_of(
            asks, connection.run_rows(lane->acquire_many, ask_rows, Acquires::columns, until), &Acquires::name);
        std::ranges::transform(tokens, told.second.begin(), &Acquires::granted_by);
        return told;
      });
    } catch (const Failure& failure) {
      if (!wrote) throw;
      throw in_doubt(failure);
    }
  }

  // Null: nothing of either kind has been done.
  const Answer* run_both(dialects::Connection& connection, std::span<const Argument> key_rows,
                         std::span<const Argument> ask_rows, Deadline until) const {
    const auto& release = lane->release_at_once != nullptr ? *lane->release_at_once : lane->release_many;
    try {
      const auto* const answer =
          connection.run_both({release, key_rows, 3}, {*lane->acquire_free_many, ask_rows, Acquires::columns}, until);
      if (answer == nullptr) lane->slow_commits.never();
      return answer;
    } catch (const Failure& failure) {
      const bool undone = harmless(failure.cause()) && !failure.may_have_run() && connection.usable();
      if (!undone && !planted("shared_doubt_forgotten")) throw;
    }
    lane->slow_commits.undone();
    return nullptr;
  }

  // As in the statements for one kind, nothing is believed where something was counted that is not told, or told that
  // was not written.
  bool believe(const Answer& answer, std::span<const LeaseKey> keys, std::span<const AcquireRequest> asks,
               Told& told) const {
    auto freed = numbers_of(keys, answer, &Releases::name);
    const auto tokens = numbers_of(asks, answer, &Acquires::name);
    auto changed = std::ranges::count_if(tokens, [](const auto& token) { return token.has_value(); });
    if (lane->release_at_once != nullptr) {
      changed += static_cast<std::ptrdiff_t>(keys.size());
      for (auto& each : freed) each = each.value_or(1);
    }
    if (answer.affected != changed && !planted("shared_answer_believed")) return false;
    told.first = releases.told(keys, freed);
    for (std::size_t i = 0; i < asks.size(); ++i) {
      if (tokens[i]) told.second[i] = Granted{Token{*tokens[i]}, false};
      else lane->free.taken(Acquires::name(asks[i]));
    }
    return true;
  }
};

}  // namespace dlock::store
