// Which statements acquire and release, one or many, and how their answers read.
#include "store/combining.hpp"

#include "store/free_names.hpp"
#include "store/kept_requests.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

namespace dlock::store {
namespace {

using dialects::Statement;

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

bool is_of_one(const Failure& failure) noexcept {
  return failure.cause() == Cause::locked || failure.cause() == Cause::rejected;
}

// The same of what came after something that was done.
Failure in_doubt(const Failure& failure) { return {failure.cause(), failure.what(), failure.code(), true}; }

// What is asked before the careful statement, where the database has a cheaper way to what is usual.
const Statement* first(const dialects::Statements& all, std::string_view name,
                       std::initializer_list<std::string_view> arguments) {
  return all.has(name) ? &all.at(name, arguments) : nullptr;
}

}  // namespace

// What both operations use.
struct Combining::Lane {
  const Statement *acquire_free, *acquire_free_many, *release_at_once;  // null: the careful one costs no more
  const Statement &acquire, &acquire_many, &release, &release_many, &busy_many, &unwanted_many;
  Pool& pool;
  ReleaseNotice& notice;
  FreeNames free{};
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
        wrote = grant_free(connection, asks, until, granted);
        std::vector<AcquireRequest> rest;
        for (std::size_t i = 0; i < asks.size(); ++i)
          if (!granted[i]) rest.push_back(asks[i]);
        if (rest.empty()) return true;
        const auto tokens =
            numbers_of(std::span<const AcquireRequest>(rest),
                       connection.run_rows(lane->acquire_many, rows_of(rest), columns, until), &AcquireOperation::name);
        auto token = tokens.begin();
        for (auto& each : granted)
          if (!each) each = granted_by(*token++);
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

  // Whether somebody may have been granted something, told or not.
  bool grant_free(dialects::Connection& connection, std::span<const AcquireRequest> asks, Deadline until,
                  std::vector<std::optional<Granted>>& granted) const {
    if (lane->acquire_free_many == nullptr) return false;
    std::vector<AcquireRequest> likely;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < asks.size(); ++i) {
      if (!lane->free.likely(name(asks[i]))) continue;
      likely.push_back(asks[i]);
      places.push_back(i);
    }
    if (likely.empty()) return false;
    bool wrote = false;
    std::vector<std::optional<std::int64_t>> tokens(likely.size());
    try {
      const Answer& answer = connection.run_rows(*lane->acquire_free_many, rows_of(likely), columns, until);
      wrote = answer.affected > 0;
      // Nothing is believed unless all that is told was written by this statement: what an owner has been granted
      // before is to be asked for by one that makes its lease last again.
      if (answer.affected == static_cast<std::int64_t>(answer.rows()) || planted("old_grants_believed"))
        tokens = numbers_of(std::span<const AcquireRequest>(likely), answer, &AcquireOperation::name);
    } catch (const Failure& failure) {  // a row is locked elsewhere
      if (failure.cause() != Cause::locked || failure.may_have_run() || !connection.usable()) throw;
    }
    for (std::size_t i = 0; i < likely.size(); ++i) {
      if (tokens[i]) granted[places[i]] = Granted{Token{*tokens[i]}, false};
      else lane->free.taken(name(likely[i]));
    }
    return wrote;
  }

  // A name is answered with its token; with 0 if it could be taken and was not (its row is locked, its queue has to be
  // looked at, somebody was quicker), and it has to be asked for alone; with -1, or not at all, when it is busy.
  static std::optional<Granted> granted_by(const std::optional<std::int64_t>& token) {
    if (token.value_or(-1) < 0) return Granted{};
    if (*token == 0) return std::nullopt;
    return Granted{Token{*token}, false};
  }
};

std::vector<Argument> rows_of(std::span<const LeaseKey> keys) {
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

  // A name is answered with 1 if it was freed, with 2 if somebody waits for that, with 0 if it was not though it still
  // is the key's (its row is locked); or not at all, when it is not the key's any more.
  std::vector<std::optional<bool>> together(std::span<const LeaseKey> keys, Loan loan, Deadline deadline) const {
    const auto rows = rows_of(keys);
    bool wrote = false;
    std::vector<std::optional<std::int64_t>> freed;
    try {
      freed = loan.use(deadline, [&](dialects::Connection& connection, Deadline until) {
        auto at_once = free_at_once(connection, keys, rows, until);
        if (at_once.freed) return std::move(*at_once.freed);
        wrote = at_once.wrote;
        return numbers_of(keys, connection.run_rows(lane->release_many, rows, 3, until), &ReleaseOperation::name);
      });
    } catch (const Failure& failure) {
      if (!wrote) throw;
      throw in_doubt(failure);
    }
    std::vector<std::optional<bool>> all(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (freed[i] != 0) all[i] = freed[i].has_value();
      if (freed[i].value_or(0) != 0) lane->free.freed(keys[i].name);
    }
    if (std::find(freed.begin(), freed.end(), 2) != freed.end()) lane->notice.ask();
    return all;
  }
  // Sent alone, what was freed already would look like somebody else's.
  static bool may_be_of_one(const Failure& failure) noexcept { return is_of_one(failure) && !failure.may_have_run(); }
  static bool leaves_open(bool) noexcept { return false; }

 private:
  struct FreedAtOnce {
    std::optional<std::vector<std::optional<std::int64_t>>> freed{};  // empty: nothing is known of any
    bool wrote = false;
  };
  FreedAtOnce free_at_once(dialects::Connection& connection, std::span<const LeaseKey> keys,
                           const std::vector<Argument>& rows, Deadline until) const {
    if (lane->release_at_once == nullptr) return {};
    try {
      const Answer& answer = connection.run_rows(*lane->release_at_once, rows, 3, until);
      if (answer.affected != static_cast<std::int64_t>(keys.size())) return {{}, answer.affected > 0};
      auto freed = numbers_of(keys, answer, &ReleaseOperation::name);
      for (auto& each : freed) each = each.value_or(1);
      return {std::move(freed), true};
    } catch (const Failure& failure) {  // a row is locked elsewhere
      if (failure.cause() != Cause::locked || failure.may_have_run() || !connection.usable()) throw;
    }
    return {};
  }
};

Combining::Combining(const dialects::Statements& all, Pool& pool, ReleaseNotice& notice, std::size_t most)
    : lane_(new Lane{
          first(all, "acquire_free", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
          first(all, "acquire_free_many", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
          first(all, "release_many_at_once", {"name", "owner", "token"}),
          all.at("acquire", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta", "ticket"}),
          all.at("acquire_many", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
          all.at("release", {"name", "owner", "token"}), all.at("release_many", {"name", "owner", "token"}),
          all.at("busy_many", {"name"}), all.at("unwanted_many", {"name", "owner", "token"}), pool, notice}),
      most_(most),
      acquires_(std::make_unique<RequestBatcher<AcquireOperation>>(AcquireOperation{lane_.get()}, most)),
      releases_(std::make_unique<RequestBatcher<ReleaseOperation>>(ReleaseOperation{lane_.get()}, most)) {}

Combining::~Combining() = default;

Granted Combining::acquire(const AcquireRequest& ask, Deadline deadline) {
  const AcquireOperation operation{lane_.get()};
  if (auto loan = lane_->pool.at_once()) return operation.alone(ask, std::move(*loan), deadline);
  // A queue has to be looked at for each.
  if (most_ < 2 || ask.ticket != 0) return operation.alone(ask, operation.borrow(deadline), deadline);
  // Who is sent alone after its batch has failed may have been granted it: the careful statement finds that out.
  auto careful = ask;
  careful.freed = ask.freed && planted("batch_led_cheaply");
  return acquires_->send(careful, deadline);
}

bool Combining::release(const LeaseKey& key, Deadline deadline) {
  const ReleaseOperation operation{lane_.get()};
  if (auto loan = lane_->pool.at_once()) return operation.alone(key, std::move(*loan), deadline);
  if (most_ < 2) return operation.alone(key, operation.borrow(deadline), deadline);
  return releases_->send(key, deadline);
}

template <class Operation>
auto Combining::together(const Operation& operation, std::span<const typename Operation::View> views,
                         Deadline deadline) {
  using Results = decltype(operation.together(views, operation.borrow(deadline), deadline));
  if (most_ < 2 || views.size() < 2) return Results(views.size());
  auto loan = operation.borrow(deadline);
  batches_.fetch_add(1, std::memory_order_relaxed);
  batched_.fetch_add(views.size(), std::memory_order_relaxed);
  return operation.together(views, std::move(loan), deadline);
}

std::vector<std::optional<Granted>> Combining::acquire_together(std::span<const AcquireRequest> asks,
                                                                Deadline deadline) {
  return together(AcquireOperation{lane_.get()}, asks, deadline);
}

std::vector<std::optional<bool>> Combining::release_together(std::span<const LeaseKey> keys, Deadline deadline) {
  return together(ReleaseOperation{lane_.get()}, keys, deadline);
}

std::optional<std::size_t> Combining::first_busy(std::span<const std::string_view> names, Deadline deadline) {
  const std::vector<Argument> rows(names.begin(), names.end());
  return lane_->pool.borrow(deadline).use(deadline, [&](dialects::Connection& connection, Deadline until) {
    const auto busy =
        numbers_of(names, connection.run_rows(lane_->busy_many, rows, 1, until), [](auto name) { return name; });
    const auto first = std::ranges::find_if(busy, [](const auto& one) { return one.has_value(); });
    return first == busy.end() ? std::nullopt : std::optional(static_cast<std::size_t>(first - busy.begin()));
  });
}

std::vector<LeaseStatus> Combining::lease_status(std::span<const LeaseKey> keys, Deadline deadline) {
  const auto rows = rows_of(keys);
  return lane_->pool.borrow(deadline).use(deadline, [&](dialects::Connection& connection, Deadline until) {
    std::vector<LeaseStatus> all;
    all.reserve(keys.size());
    for (const auto& said :
         numbers_of(keys, connection.run_rows(lane_->unwanted_many, rows, 3, until), &ReleaseOperation::name)) {
      if (!said) all.push_back(LeaseStatus::gone);
      else all.push_back(*said == 0 ? LeaseStatus::wanted : LeaseStatus::unwanted);
    }
    return all;
  });
}

Traffic Combining::traffic() const {
  const auto use = lane_->pool.use();
  Traffic traffic{use.limit, use.open, use.in_use, use.waiting, use.in_use + use.opening + use.waiting};
  const auto add = [&traffic](const auto& batcher) {
    traffic.in_flight += batcher.queued() + batcher.under_way();
    traffic.batches += batcher.batches();
    traffic.batched += batcher.batched();
  };
  add(*acquires_);
  add(*releases_);
  traffic.batches += batches_.load(std::memory_order_relaxed);
  traffic.batched += batched_.load(std::memory_order_relaxed);
  return traffic;
}

}  // namespace dlock::store
