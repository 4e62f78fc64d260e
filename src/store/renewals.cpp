// Reads the answers to renewals; and what is answered of leases of one kind where the other kind fails.
#include "store/renewals.hpp"

#include "types/failure.hpp"

#include <string_view>
#include <unordered_map>

namespace dlock::store {
namespace {

Renewal renewal_of(std::int64_t number) {
  if (number == 0) return Renewed::not_known_yet;
  return {Renewed::yes, wanted_of(number - 1)};
}

}  // namespace

std::optional<Wanted> wanted_of(std::int64_t number) {
  if (number <= 0) return std::nullopt;
  const auto kind = number % 4;
  return Wanted{Duration{number / 4}, kind == 1 ? Mode::shared : kind == 2 ? Mode::permits : Mode::exclusive};
}

std::vector<Argument> renewal_arguments(std::span<const LeaseKey> keys) {
  std::vector<Argument> rows;
  rows.reserve(keys.size() * 4);
  for (const auto& key : keys)
    for (const Argument& argument :
         {Argument{key.name}, Argument{key.owner}, Argument{number(key.token)}, Argument{key.lease.count()}})
      rows.push_back(argument);
  return rows;
}

std::vector<Renewal> renewed_many(std::span<const LeaseKey> keys, const Answer& answer) {
  std::unordered_map<std::string_view, Renewal> by_owner(answer.rows());
  for (std::size_t row = 0; row < answer.rows(); ++row)
    by_owner.emplace(answer.text(row, 0), renewal_of(answer.integer(row, 1)));
  std::vector<Renewal> renewed;
  renewed.reserve(keys.size());
  for (const auto& key : keys) {
    const auto found = by_owner.find(key.owner);
    renewed.push_back(found == by_owner.end() ? Renewal(Renewed::lost) : found->second);
  }
  return renewed;
}

std::vector<Renewal> renew_each(std::span<const LeaseKey> keys, const RenewalKinds& kinds) {
  std::vector<LeaseKey> plain, shared;
  plain.reserve(keys.size());
  for (const auto& key : keys) (key.mode == Mode::exclusive ? plain : shared).push_back(key);
  auto exclusive = plain.empty() ? std::vector<Renewal>{} : kinds.plain(plain);
  if (shared.empty()) return exclusive;
  std::vector<Renewal> together(shared.size(), Renewed::not_known_yet);
  try {
    together = kinds.shared(shared);
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::locked && exclusive.empty()) throw;
  }
  std::vector<Renewal> all;
  all.reserve(keys.size());
  auto next = exclusive.begin();
  auto next_shared = together.cbegin();
  for (const auto& key : keys) all.push_back(key.mode == Mode::exclusive ? *next++ : *next_shared++);
  return all;
}

Renewal renewed_one(const Answer& answer) {
  if (answer.affected == 0) return Renewed::lost;
  return {Renewed::yes, answer.rows() > 0 ? wanted_of(answer.integer(0, 0)) : std::nullopt};
}

}  // namespace dlock::store
