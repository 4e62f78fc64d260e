// How acquires and releases find their way: alone, with others of their kind, or with both.
#include "store/combining.hpp"

#include "store/both_kinds.hpp"
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
          all.at("acquire", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta", "ticket"}),
          all.at("acquire_many", {"name", "owner", "node", "label", "actor", "lease", "at_least", "meta"}),
          all.at("release", {"name", "owner", "token"}), all.at("release_many", {"name", "owner", "token"}),
          all.at("busy_many", {"name"}), all.at("unwanted_many", {"name", "owner", "token"}), pool, notice}),
      most_(most),
      acquires_(std::make_unique<RequestBatcher<Acquires>>(Acquires{lane_.get()}, most)),
      releases_(std::make_unique<RequestBatcher<Releases>>(Releases{lane_.get()}, most)),
      both_(std::make_unique<RequestBatcher<Both>>(Both{lane_.get()}, most)) {}

Combining::~Combining() = default;

Granted Combining::acquire(const AcquireRequest& ask, Deadline deadline) {
  const Acquires trip{lane_.get()};
  if (auto turn = lane_->pool.at_once()) return trip.alone(ask, std::move(*turn), deadline);
  // A queue has to be looked at for each.
  if (most_ < 2 || ask.ticket != 0) return trip.alone(ask, trip.turn(deadline), deadline);
  // Who is sent alone after its batch has failed may have been granted it: the careful statement finds that out.
  auto careful = ask;
  careful.freed = ask.freed && planted("batch_led_cheaply");
  // What is not granted so goes among its like.
  if (!ask.freed && lane_->shares_commits() && lane_->free.likely(Acquires::name(ask)))
    if (const auto granted = both_->send(careful, deadline).granted) return *granted;
  return acquires_->send(careful, deadline);
}

bool Combining::release(const LeaseKey& key, Deadline deadline) {
  const Releases trip{lane_.get()};
  if (auto turn = lane_->pool.at_once()) return trip.alone(key, std::move(*turn), deadline);
  if (most_ < 2) return trip.alone(key, trip.turn(deadline), deadline);
  if (lane_->shares_commits()) return both_->send(key, deadline).freed;
  return releases_->send(key, deadline);
}

template <class Trip>
auto Combining::together(const Trip& trip, std::span<const typename Trip::View> views, Deadline deadline) {
  using Results = decltype(trip.together(views, trip.turn(deadline), deadline));
  if (most_ < 2 || views.size() < 2) return Results(views.size());
  auto turn = trip.turn(deadline);
  batches_.fetch_add(1, std::memory_order_relaxed);
  batched_.fetch_add(views.size(), std::memory_order_relaxed);
  return trip.together(views, std::move(turn), deadline);
}

std::vector<std::optional<Granted>> Combining::acquire_together(std::span<const AcquireRequest> asks,
                                                                Deadline deadline) {
  return together(Acquires{lane_.get()}, asks, deadline);
}

std::vector<std::optional<bool>> Combining::release_together(std::span<const LeaseKey> keys, Deadline deadline) {
  return together(Releases{lane_.get()}, keys, deadline);
}

std::optional<std::size_t> Combining::first_busy(std::span<const std::string_view> names, Deadline deadline) {
  const std::vector<Argument> rows(names.begin(), names.end());
  return lane_->pool.turn(deadline).use(deadline, [&](dialects::Connection& connection, Deadline until) {
    const auto busy =
        numbers_of(names, connection.run_rows(lane_->busy_many, rows, 1, until), [](auto name) { return name; });
    const auto first = std::ranges::find_if(busy, [](const auto& one) { return one.has_value(); });
    return first == busy.end() ? std::nullopt : std::optional(static_cast<std::size_t>(first - busy.begin()));
  });
}

std::vector<LeaseStatus> Combining::lease_status(std::span<const LeaseKey> keys, Deadline deadline) {
  const auto rows = rows_of(keys);
  return lane_->pool.turn(deadline).use(deadline, [&](dialects::Connection& connection, Deadline until) {
    std::vector<LeaseStatus> all;
    all.reserve(keys.size());
    for (const auto& said :
         numbers_of(keys, connection.run_rows(lane_->unwanted_many, rows, 3, until), &Releases::name)) {
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
  add(*both_);
  traffic.batches += batches_.load(std::memory_order_relaxed);
  traffic.batched += batched_.load(std::memory_order_relaxed);
  return traffic;
}

}  // namespace dlock::store
