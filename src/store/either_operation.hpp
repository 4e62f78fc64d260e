// How releases and acquires are sent together: one request, one commit.
#pragma once

#include "store/request_kinds.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dlock::store {

// No name is in one batch twice, so that none is released and acquired by one commit. Nobody in it waits for a row: who
// has released something and waited for what another engine has released could do so for ever.
struct Combining::EitherOperation {
  using View = EitherRequest;
  using Kept = KeptEitherRequest;
  struct Result {
    bool freed = false;                // what became of a release
    std::optional<Granted> granted{};  // or of an acquire
  };
  using Loan = Pool::Loan;
  Lane* lane;
  bool shares;  // commits, where they are slow
  ReleaseOperation releases{lane};
  AcquireOperation acquires{lane};

  static const LeaseKey* key(const View& view) noexcept { return std::get_if<LeaseKey>(&view); }
  static const AcquireRequest& ask(const View& view) { return std::get<AcquireRequest>(view); }
  static std::string_view name(const View& view) {
    return key(view) != nullptr ? ReleaseOperation::name(*key(view)) : AcquireOperation::name(ask(view));
  }
  static std::size_t kind(const View& view) noexcept { return view.index(); }
  Pace pace() const noexcept { return shares ? lane->slow_commits.pace() : Pace{}; }
  Loan borrow(Deadline deadline) const { return lane->pool.borrow(deadline); }
  static bool is_open(const Loan& loan) { return loan.is_open(); }
  static Deadline promptly(const Loan& loan, Deadline deadline) { return loan.promptly(deadline); }
  Failure none_lent() const { return lane->pool.none_lent(); }

  Result alone(const View& view, Loan loan, Deadline deadline) const {
    if (key(view) != nullptr) return {releases.alone(*key(view), std::move(loan), deadline), {}};
    return {false, acquires.alone(ask(view), std::move(loan), deadline)};
  }

  std::vector<BatchResult<Result>> together(std::span<const View> views, Loan loan, Deadline deadline) const {
    std::vector<LeaseKey> keys;
    std::vector<AcquireRequest> asks;
    for (const auto& view : views) {
      if (key(view) != nullptr) keys.push_back(*key(view));
      else asks.push_back(ask(view));
    }
    Told told;
    if (asks.empty()) told.freed = releases.together(keys, std::move(loan), deadline);
    else if (keys.empty()) told.granted = acquires.together(asks, std::move(loan), deadline);
    else told = both(keys, asks, std::move(loan), deadline);
    std::vector<BatchResult<Result>> all(views.size());
    auto freed = told.freed.begin();
    auto granted = told.granted.begin();
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (key(views[i]) != nullptr) {
        if (const auto& one = *freed++) all[i].result = {*one, {}};
      } else if (const auto& one = *granted++) {
        all[i].result = {false, one};
      } else {
        all[i].failure = told.failed;
        all[i].in_doubt = told.in_doubt;
      }
    }
    return all;
  }
  static bool may_be_of_one(const View& view, const Failure& failure) noexcept {
    return key(view) != nullptr ? ReleaseOperation::may_be_of_one(failure) : AcquireOperation::may_be_of_one(failure);
  }
  static bool leaves_open(const Result& result) noexcept {
    return result.granted && AcquireOperation::leaves_open(*result.granted);
  }

 private:
  // In the order of names; what is empty has to be sent alone.
  struct Told {
    std::vector<std::optional<bool>> freed{};
    std::vector<std::optional<Granted>> granted{};
    // What went wrong with the acquires that are empty; or that they may have been granted all the same.
    std::optional<Failure> failed{};
    bool in_doubt = false;
  };

  using Tokens = AcquireOperation::Tokens;

  // Where one commit for both is undone, or tells too little, each kind follows by itself on the same connection. What
  // goes wrong with acquires behind the releases is no concern of those.
  Told both(std::span<const LeaseKey> keys, std::span<const AcquireRequest> asks, Loan loan, Deadline deadline) const {
    Told told{{}, std::vector<std::optional<Granted>>(asks.size())};
    bool wrote = false;
    try {
      return loan.use(deadline, [&](dialects::Connection& connection, Deadline until) {
        const bool one_commit = in_one_commit(connection, keys, asks, until, told);
        if (!one_commit) told.freed = releases.told(keys, releases.freed_by(connection, keys, until, wrote));
        if (!connection.usable()) return std::move(told);  // some of the releases have failed: the rest goes alone
        if (!one_commit) told.in_doubt = acquires.grant_free(connection, asks, until, told.granted).in_doubt;
        acquires.grant_rest(connection, asks, until, told.granted);
        return std::move(told);
      });
    } catch (const Failure& failure) {
      if (told.freed.empty()) throw wrote ? in_doubt(failure) : failure;
      const bool doubt = failure.may_have_run() || told.in_doubt;
      if (AcquireOperation::may_be_of_one(failure)) told.in_doubt = doubt;
      else told.failed = doubt ? in_doubt(failure) : failure;
    }
    return told;
  }

  // False: nothing of either kind has been done.
  bool in_one_commit(dialects::Connection& connection, std::span<const LeaseKey> keys,
                     std::span<const AcquireRequest> asks, Deadline until, Told& told) const {
    const auto likely = acquires.likely_of(asks);
    if (likely.empty()) {  // such a commit would save none
      lane->slow_commits.saves_none();
      return false;
    }
    const auto key_rows = rows_of(keys);
    const auto ask_rows = AcquireOperation::rows_of(likely);
    const auto begun = BootClock::now();
    const auto answer = run_both(connection, key_rows, ask_rows, until);
    if (!answer) return false;
    const auto took = BootClock::now() - begun;
    lane->slow_commits.saved();
    const auto freed = numbers_of(keys, answer->rows, &ReleaseOperation::name);
    told.freed = releases.told(keys, freed);
    // As in the statement for one kind, no grant is believed where something is told that was not written: who asked
    // then may have been granted it before.
    const auto tokens = AcquireOperation::tokens_of(likely, answer->rows);
    const auto granted = std::ranges::count_if(tokens, [](const auto& token) { return token.has_value(); });
    const bool believed = answer->changed_by_second == granted || planted("shared_grants_believed");
    told.in_doubt = !believed;
    acquires.note(asks, likely, tokens, believed, told.granted);
    if (answer->changed_by_second > 0 || ReleaseOperation::frees_any(freed))
      lane->slow_commits.wrote(took, keys.size() + likely.size());
    return true;
  }

  // Empty: nothing of either kind has been done.
  std::optional<dialects::AnswerOfCommit> run_both(dialects::Connection& connection, std::span<const Argument> key_rows,
                                                   std::span<const Argument> ask_rows, Deadline until) const {
    const auto& release = lane->release_shared != nullptr ? *lane->release_shared : lane->release_many;
    try {
      const auto answer = connection.run_in_one_commit(
          {release, key_rows, 3}, {*lane->acquire_free_many, ask_rows, AcquireOperation::columns}, until);
      if (!answer) lane->slow_commits.never();
      return answer;
    } catch (const Failure& failure) {
      const bool undone = harmless(failure.cause()) && !failure.may_have_run() && connection.usable();
      if (!undone && !planted("shared_doubt_forgotten")) throw;
    }
    lane->slow_commits.undone();
    return std::nullopt;
  }
};

}  // namespace dlock::store
