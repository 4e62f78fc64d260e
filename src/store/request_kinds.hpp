// Which statements acquire and release, one or many, which cheaper one is tried first, and how their answers read; how
// many have to ask at once before commits are shared.
#pragma once

#include "store/combining.hpp"
#include "store/free_names.hpp"
#include "store/kept_requests.hpp"
#include "store/slow_commits.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::store {

// The numbers that a statement answered for some of the names, which are in order.
template <class View, class NameOf>
std::vector<std::optional<std::int64_t>> numbers_of(std::span<const View> views, const Answer& answer, NameOf name_of) {
  std::vector<std::optional<std::int64_t>> numbers(views.size());
  for (std::size_t row = 0; row < answer.rows(); ++row) {
    const std::string_view name = answer.text(row, 0);
    const auto found = std::lower_bound(views.begin(), views.end(), name,
                                        [&](const View& view, std::string_view key) { return name_of(view) < key; });
    if (found == views.end() || name_of(*found) != name) continue;
    auto& number = numbers[static_cast<std::size_t>(found - views.begin())];
    number = answer.integer(row, 1);
  }
  return numbers;
}

inline bool is_of_one(const Failure& failure) noexcept {
  return failure.cause() == Cause::locked || failure.cause() == Cause::rejected;
}

// The same of what came after something that was done.
inline Failure in_doubt(const Failure& failure) { return {failure.cause(), failure.what(), failure.code(), true}; }

// What both operations use.
struct Combining::Lane {
  // Null: the careful one costs no more.
  const dialects::Statement *acquire_free, *acquire_free_many, *release_at_once, *freed_at_once, *release_shared;
  const dialects::Statement &acquire, &acquire_many, &release, &release_many, &busy_many, &unwanted_many;
  Pool& pool;
  ReleaseNotice& notice;
  FreeNames free{};
  SlowCommits slow_commits{};

  std::atomic<std::size_t> crowd{0};  // see BatchWindow

  // Whether those who come are so many, and commits so slow, that all of them had better share those.
  bool shares_commits() const noexcept {
    return crowd.load(std::memory_order_relaxed) >= 8 && acquire_free_many != nullptr && slow_commits.pace().shared;
  }
};

struct Combining::AcquireOperation {
  using View = AcquireRequest;
  using Kept = KeptAcquireRequest;
  using Result = Granted;
  using Loan = Pool::Loan;
  Lane* lane;

  static std::string_view name(const AcquireRequest& ask) { return ask.name.text(); }
  Loan borrow(Deadline deadline) const { return lane->pool.borrow(deadline); }
  static bool is_open(const Loan& loan) { return loan.is_open(); }
  Failure none_lent() const { return lane->pool.none_lent(); }

  Granted alone(const AcquireRequest& ask, Loan loan, Deadline deadline) const {
    const std::array<Argument, 9> arguments{std::string_view{ask.name.text()},
                                            ask.owner,
                                            ask.node,
                                            ask.label,
                                            ask.actor,
                                            ask.lease.count(),
                                            ask.at_least.count(),
                                            ask.metadata,
                                            ask.ticket};
    const bool plain = lane->acquire_free != nullptr && ask.ticket == 0 && (ask.freed || lane->free.likely(name(ask)));
    try {
      return loan.use(deadline, [&](dialects::Connection& connection, Deadline until) {
        if (plain) {
          const auto free = free_one(connection, std::span(arguments).first(8), until);
          if (!free.token) lane->free.taken(name(ask));
          if (free.token || ask.freed) return free;
        }
        const Answer& answer = connection.run(lane->acquire, arguments, until);
        return answer.rows() == 0 ? Granted{} : Granted{Token{answer.integer(0, 0)}, false};
      });
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::locked || failure.may_have_run()) throw;
      return {std::nullopt, true};
    }
  }
  // Who has been granted the name before may hold it.
  static bool leaves_open(const Granted& granted) noexcept { return !granted.token && granted.row_locked; }

  // First what is likely to be free, at less cost, and then the rest: which is sent alone where that fails, so that
  // nobody is told that nothing was done who has been granted something. A failure in doubt is that of all, also where
  // it is of one packet and another one was carried out: who has been granted something finds out when it asks again,
  // alone.
  std::vector<std::optional<Granted>> together(std::span<const AcquireRequest> asks, Loan loan,
                                               Deadline deadline) const {
    std::vector<std::optional<Granted>> granted(asks.size());
    bool wrote = false;
    try {
      loan.use(deadline, [&](dialects::Connection& connection, Deadline until) {
        const auto begun = BootClock::now();
        wrote = grant_free(connection, asks, until, granted).wrote;
        if (grant_rest(connection, asks, until, granted))
          lane->slow_commits.wrote(BootClock::now() - begun, asks.size());
        return true;
      });
    } catch (const Failure& failure) {
      const bool told = std::ranges::any_of(granted, [](const auto& each) { return each.has_value(); });
      if (failure.may_have_run() || !wrote) throw;
      if (!told) throw in_doubt(failure);
    }
    return granted;
  }
  static bool may_be_of_one(const Failure& failure) noexcept {
    return is_of_one(failure) && !(failure.cause() == Cause::locked && failure.may_have_run());
  }

 private:
  friend EitherOperation;
  static constexpr std::size_t columns = 8;  // of the statements for many

  // Not granted: which says nothing else.
  Granted free_one(dialects::Connection& connection, std::span<const Argument> arguments, Deadline until) const {
    try {
      const Answer& answer = connection.run(*lane->acquire_free, arguments, until);
      if (answer.rows() > 0 && answer.affected > 0) return {Token{answer.integer(0, 0)}, false};
    } catch (const Failure& failure) {  // the row is locked elsewhere, which is no answer where somebody holds it
      if (failure.cause() != Cause::locked || failure.may_have_run() || !connection.usable()) throw;
      return {std::nullopt, true};
    }
    return {std::nullopt, planted("refused_looks_locked")};
  }

  static std::vector<Argument> rows_of(std::span<const AcquireRequest> asks) {
    std::vector<Argument> rows;
    rows.reserve(asks.size() * columns);
    for (const auto& ask : asks)
      for (const Argument& argument :
           std::initializer_list<Argument>{std::string_view{ask.name.text()}, ask.owner, ask.node, ask.label, ask.actor,
                                           ask.lease.count(), ask.at_least.count(), ask.metadata})
        rows.push_back(argument);
    return rows;
  }

  // Whether somebody has been granted something, told or not; and whether that may be one who is told nothing.
  struct GrantedFree {
    bool wrote = false, in_doubt = false;
  };
  GrantedFree grant_free(dialects::Connection& connection, std::span<const AcquireRequest> asks, Deadline until,
                         std::vector<std::optional<Granted>>& granted) const {
    if (lane->acquire_free_many == nullptr) return {};
    const auto likely = likely_of(asks);
    if (likely.empty()) return {};
    try {
      const Answer& answer = connection.run_rows(*lane->acquire_free_many, rows_of(likely), columns, until);
      // Nothing is believed unless all that is told was written by this statement: what an owner has been granted
      // before is to be asked for by one that makes its lease last again.
      const bool all_written = answer.affected == static_cast<std::int64_t>(answer.rows());
      note(asks, likely, tokens_of(likely, answer), all_written || planted("old_grants_believed"), granted);
      return {answer.affected > 0, answer.affected > 0 && !all_written};
    } catch (const Failure& failure) {  // a row is locked elsewhere
      if (failure.cause() != Cause::locked || failure.may_have_run() || !connection.usable()) throw;
    }
    note(asks, likely, Tokens(likely.size()), true, granted);
    return {};
  }

  // Asks for those who are told nothing yet, by the careful statement. True: there was nobody.
  bool grant_rest(dialects::Connection& connection, std::span<const AcquireRequest> asks, Deadline until,
                  std::vector<std::optional<Granted>>& granted) const {
    std::vector<AcquireRequest> rest;
    for (std::size_t i = 0; i < asks.size(); ++i)
      if (!granted[i]) rest.push_back(asks[i]);
    if (rest.empty()) return true;
    const auto tokens = tokens_of(rest, connection.run_rows(lane->acquire_many, rows_of(rest), columns, until));
    auto token = tokens.begin();
    for (auto& each : granted)
      if (!each) each = granted_by(*token++);
    return false;
  }

  using Tokens = std::vector<std::optional<std::int64_t>>;
  static Tokens tokens_of(std::span<const AcquireRequest> asks, const Answer& answer) {
    return numbers_of(asks, answer, &AcquireOperation::name);
  }
  // Those whose names are likely to be free.
  std::vector<AcquireRequest> likely_of(std::span<const AcquireRequest> asks) const {
    std::vector<AcquireRequest> likely;
    for (const auto& ask : asks)
      if (lane->free.likely(name(ask))) likely.push_back(ask);
    return likely;
  }
  // What became of `likely`, which are some of `asks`, both in the order of names. What is not believed is not told.
  void note(std::span<const AcquireRequest> asks, std::span<const AcquireRequest> likely, const Tokens& tokens,
            bool believed, std::vector<std::optional<Granted>>& granted) const {
    std::size_t at = 0;
    for (std::size_t i = 0; i < likely.size(); ++i) {
      while (name(asks[at]) != name(likely[i])) ++at;
      if (!tokens[i]) lane->free.taken(name(likely[i]));
      else if (believed) granted[at] = Granted{Token{*tokens[i]}, false};
    }
  }

  // A name is answered with its token; with 0 if it could be taken and was not (its row is locked, its queue has to be
  // looked at, somebody was quicker), and it has to be asked for alone; with -1, or not at all, when it is busy.
  static std::optional<Granted> granted_by(const std::optional<std::int64_t>& token) {
    if (token.value_or(-1) < 0) return Granted{};
    if (*token == 0) return std::nullopt;
    return Granted{Token{*token}, false};
  }
};

inline std::vector<Argument> rows_of(std::span<const LeaseKey> keys) {
  std::vector<Argument> rows;
  rows.reserve(keys.size() * 3);
  for (const auto& key : keys)
    for (const Argument& argument : std::initializer_list<Argument>{key.name, key.owner, number(key.token)})
      rows.push_back(argument);
  return rows;
}

struct Combining::ReleaseOperation {
  using View = LeaseKey;
  using Kept = KeptLeaseKey;
  using Result = bool;
  using Loan = Pool::Loan;
  Lane* lane;

  static std::string_view name(const LeaseKey& key) { return key.name; }
  Loan borrow(Deadline deadline) const { return lane->pool.borrow(deadline); }
  static bool is_open(const Loan& loan) { return loan.is_open(); }
  Failure none_lent() const { return lane->pool.none_lent(); }

  bool alone(const LeaseKey& key, Loan loan, Deadline deadline) const {
    const std::array<Argument, 3> arguments{key.name, key.owner, number(key.token)};
    return loan.use(deadline, [&](dialects::Connection& connection, Deadline until) {
      const Answer& answer = connection.run(lane->release, arguments, until);
      lane->notice.heed(answer);
      if (answer.affected > 0) lane->free.freed(key.name);
      return answer.affected > 0;
    });
  }

  std::vector<std::optional<bool>> together(std::span<const LeaseKey> keys, Loan loan, Deadline deadline) const {
    bool wrote = false;
    try {
      return loan.use(deadline, [&](dialects::Connection& connection, Deadline until) {
        const auto begun = BootClock::now();
        const auto freed = freed_by(connection, keys, until, wrote);
        if (frees_any(freed)) lane->slow_commits.wrote(BootClock::now() - begun, keys.size());
        return told(keys, freed);
      });
    } catch (const Failure& failure) {
      if (!wrote) throw;
      throw in_doubt(failure);
    }
  }
  // Sent alone, what was freed already would look like somebody else's.
  static bool may_be_of_one(const Failure& failure) noexcept { return is_of_one(failure) && !failure.may_have_run(); }
  static bool leaves_open(bool) noexcept { return false; }

 private:
  friend EitherOperation;
  // A name is answered with 1 if it was freed, with 2 if somebody waits for that, with 0 if it was not though it still
  // is the key's (its row is locked); or not at all, when it is not the key's any more.
  using Freed = std::vector<std::optional<std::int64_t>>;
  static bool frees_any(const Freed& freed) {
    return std::ranges::any_of(freed, [](const auto& one) { return one.value_or(0) > 0; });
  }

  // `wrote`: set where some were freed, whatever comes after that.
  Freed freed_by(dialects::Connection& connection, std::span<const LeaseKey> keys, Deadline until, bool& wrote) const {
    auto freed = free_at_once(connection, keys, until, wrote);
    std::vector<LeaseKey> rest;
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (!freed[i]) rest.push_back(keys[i]);
    if (rest.empty()) return freed;
    Freed answers(rest.size(), 0);
    try {
      const auto& said = connection.run_rows(lane->release_many, rows_of(rest), 3, until);
      answers = numbers_of(std::span<const LeaseKey>(rest), said, &ReleaseOperation::name);
    } catch (const Failure& failure) {  // else each of the rest is asked for alone
      if (failure.may_have_run() || rest.size() == keys.size()) throw;
    }
    auto answer = answers.begin();
    for (auto& each : freed)
      if (!each) each = *answer++;
    return freed;
  }
  std::vector<std::optional<bool>> told(std::span<const LeaseKey> keys, const Freed& freed) const {
    std::vector<std::optional<bool>> all(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (freed[i] != 0) all[i] = freed[i].has_value();
      if (freed[i].value_or(0) != 0) lane->free.freed(keys[i].name);
    }
    if (std::find(freed.begin(), freed.end(), 2) != freed.end()) lane->notice.ask();
    return all;
  }

  // What is freed at less cost. Of what is empty nothing is known.
  Freed free_at_once(dialects::Connection& connection, std::span<const LeaseKey> keys, Deadline until,
                     bool& wrote) const {
    Freed none(keys.size());
    if (lane->release_at_once == nullptr) return none;
    const auto rows = rows_of(keys);
    std::int64_t count = 0;
    try {
      const Answer& answer = connection.run_rows(*lane->release_at_once, rows, 3, until);
      count = answer.affected;
      if (count == static_cast<std::int64_t>(keys.size())) {
        auto freed = numbers_of(keys, answer, &ReleaseOperation::name);
        for (auto& each : freed) each = each.value_or(1);
        return freed;
      }
    } catch (const Failure& failure) {  // a row is locked elsewhere
      if (failure.cause() != Cause::locked || failure.may_have_run() || !connection.usable()) throw;
    }
    if (count == 0 || planted("taken_at_once_looks_lost")) return none;
    wrote = true;
    auto freed = numbers_of(keys, connection.run_rows(*lane->freed_at_once, rows, 3, until), &ReleaseOperation::name);
    return std::ranges::count_if(freed, [](const auto& one) { return one.has_value(); }) == count ? freed : none;
  }
};

}  // namespace dlock::store
