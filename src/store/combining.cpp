// Which acquires and releases are sent alone at once, and which go with others (never one with a ticket). And what is
// under way, in numbers, for Engine::stats.
#include "store/combining.hpp"

#include "store/either_operation.hpp"
#include "store/request_kinds.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace dlock::store {
namespace {

// What is asked before the careful statement, where the database has a cheaper way to what is usual.
const dialects::Statement* first(const dialects::Statements& all, std::string_view name,
                                 std::initializer_list<std::string_view> arguments) {
  return all.has(name) ? &all.at(name, arguments) : nullptr;
}

}  // namespace

Combining::Combining(const dialects::Statements& all, Pool& pool, ReleaseNotice& notice, std::size_t most)
    : lane_(new Lane{
          first(all, "acquire_free", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
          first(all, "acquire_free_many", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
          first(all, "release_many_at_once", {"name", "owner", "token"}),
          first(all, "freed_at_once", {"name", "owner", "token"}),
          first(all, "release_many_shared", {"name", "owner", "token"}),
          all.at("acquire", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta", "ticket"}),
          all.at("acquire_many", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
          all.at("release", {"name", "owner", "token"}), all.at("release_many", {"name", "owner", "token"}),
          all.at("busy_many", {"name"}), all.at("unwanted_many", {"name", "owner", "token"}), pool, notice}),
      most_(most),
      acquires_(batcher(false)),
      releases_(batcher(false)),
      both_(batcher(true)) {}

Combining::~Combining() = default;

std::unique_ptr<RequestBatcher<Combining::EitherOperation>> Combining::batcher(bool shares) const {
  return std::make_unique<RequestBatcher<EitherOperation>>(EitherOperation{lane_.get(), shares}, most_, lane_->crowd);
}

Granted Combining::acquire(const AcquireRequest& ask, Deadline deadline) {
  const AcquireOperation operation{lane_.get()};
  // A queue has to be looked at for each.
  const bool alone = most_ < 2 || ask.ticket != 0;
  // In a crowd nobody takes a connection for itself where commits are slow: they are worth more to many.
  const bool shares = !alone && lane_->shares_commits();
  if (!shares)
    if (auto loan = lane_->pool.at_once()) return operation.alone(ask, std::move(*loan), deadline);
  if (alone) return operation.alone(ask, operation.borrow(deadline), deadline);
  // Who is sent alone after its batch has failed may have been granted it: the careful statement finds that out.
  auto careful = ask;
  careful.freed = ask.freed && planted("batch_led_cheaply");
  return *(shares ? both_ : acquires_)->send(careful, deadline).granted;
}

bool Combining::release(const LeaseKey& key, Deadline deadline) {
  const ReleaseOperation operation{lane_.get()};
  const bool shares = most_ > 1 && lane_->shares_commits();
  if (!shares)
    if (auto loan = lane_->pool.at_once()) return operation.alone(key, std::move(*loan), deadline);
  if (most_ < 2) return operation.alone(key, operation.borrow(deadline), deadline);
  return (shares ? both_ : releases_)->send(key, deadline).freed;
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
  for (const auto* batcher : {acquires_.get(), releases_.get(), both_.get()}) {
    traffic.in_flight += batcher->queued() + batcher->under_way() + (batcher->gathers() ? 1 : 0);
    traffic.batches += batcher->batches();
    traffic.batched += batcher->batched();
  }
  traffic.batches += batches_.load(std::memory_order_relaxed);
  traffic.batched += batched_.load(std::memory_order_relaxed);
  return traffic;
}

}  // namespace dlock::store
