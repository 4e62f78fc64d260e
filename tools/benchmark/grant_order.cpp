// How the grants of a herd are put in order and looked through.
#include "grant_order.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace bench {
namespace {

std::string first_wrong(std::span<const Seat* const> in_order, std::int64_t released, const Tickets* tickets) {
  for (const auto* seat : in_order)
    if (seat->failure[0] != '\0') return fmt::format("a waiter failed: {}", seat->failure.data());
  std::int64_t before = 0, left = released, token = 0;
  for (const auto* seat : in_order) {
    if (seat->granted < left)
      return fmt::format("token {} was granted before token {} was released", seat->token, token);
    if (seat->token == token) return fmt::format("token {} was granted twice", token);
    token = seat->token;
    left = seat->leaving;
    if (tickets == nullptr) continue;
    const auto found = tickets->find(seat->owner.data());
    if (found == tickets->end()) return fmt::format("token {} was granted to somebody without a ticket", token);
    if (found->second <= before) return fmt::format("ticket {} was granted after ticket {}", found->second, before);
    before = found->second;
  }
  return {};
}

// Most grants in a row among the first `threads` seats before the last of the others.
std::size_t longest_row(std::span<const Seat* const> in_order, const Seat* others) {
  std::size_t row = 0, longest = 0;
  for (const auto* seat : in_order) {
    if (seat < others) ++row;
    else longest = std::max(longest, std::exchange(row, 0));
  }
  return longest;
}

}  // namespace

void judge(std::span<const Seat> seats, std::size_t threads, std::int64_t released, const Tickets* tickets,
           HerdResult& result) {
  std::vector<const Seat*> in_order;
  for (const auto& seat : seats) in_order.push_back(&seat);
  std::sort(in_order.begin(), in_order.end(), [](const Seat* a, const Seat* b) { return a->token < b->token; });
  result.wrong = first_wrong(in_order, released, tickets);
  result.longest_row = longest_row(in_order, seats.data() + threads);
  std::int64_t last = released;
  for (const auto& seat : seats) {
    if (seat.failure[0] != '\0') continue;
    (&seat < seats.data() + threads ? result.threads : result.processes).push_back(seat.granted - released);
    last = std::max(last, seat.left);
  }
  result.all = static_cast<double>(last - released) / 1e9;
}

}  // namespace bench
