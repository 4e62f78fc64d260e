// The ledgers of a run, each for another way to hold a lock: its name says in which one a lock is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

enum class Ledger {
  bank,     // exclusive locks: who has one transfers money between its accounts
  readers,  // likewise, and who shares it reads its two accounts
  permits,  // there are no accounts: who has permits of it works
};

inline Ledger ledger_of(std::string_view name) noexcept {
  return name.starts_with("readers/") ? Ledger::readers : name.starts_with("permits/") ? Ledger::permits : Ledger::bank;
}

constexpr std::size_t accounts_of(Ledger ledger) noexcept {
  return ledger == Ledger::bank ? 4 : ledger == Ledger::readers ? 2 : 0;
}

constexpr long long permits_there_are = 3;

// One for which a single process asks most of the time: there it may linger.
constexpr std::string_view lone_till = "till/lone";

// Those of a run.
inline const std::vector<std::string>& ledger_names() {
  static const std::vector<std::string> list{"till/a", "till/b", std::string(lone_till), "readers/a", "permits/a"};
  return list;
}

}  // namespace dlock::test
