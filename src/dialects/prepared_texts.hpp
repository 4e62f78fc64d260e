// How a connection finds what it has prepared for a statement.
#pragma once

#include "dialects/statement.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dlock::dialects {

// A few, found by the number of their statement; where that is unknown, by the text, which is long to compare.
// Threads: one at a time.
template <class Prepared>
class PreparedTexts {
 public:
  struct PreparedText {
    std::uint64_t number;
    std::string text;
    Prepared prepared;
  };

  // Null: it was not prepared yet. Valid until the next add().
  Prepared* find(const Statement& statement) noexcept {
    if (statement.number != 0)
      for (auto& entry : entries_)
        if (entry.number == statement.number) return &entry.prepared;
    for (auto& entry : entries_)
      if (entry.text == statement.sql) return &entry.prepared;
    return nullptr;
  }

  Prepared& add(const Statement& statement, Prepared prepared) {
    return entries_.emplace_back(PreparedText{statement.number, statement.sql, std::move(prepared)}).prepared;
  }

  std::size_t size() const noexcept { return entries_.size(); }
  auto begin() noexcept { return entries_.begin(); }
  auto end() noexcept { return entries_.end(); }

 private:
  std::vector<PreparedText> entries_;
};

}  // namespace dlock::dialects
