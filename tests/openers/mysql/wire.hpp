// This file knows where requests begin in MySQL's protocol.
#pragma once

#include "support/place.hpp"

#include <string>

namespace dlock::test::DLOCK_DIALECT {

// Counts packets with the number 0: each begins a command. Closing a statement is one without an answer.
class Counter final : public RequestCounter {
 public:
  std::size_t feed(std::string_view sent) override {
    unread_.append(sent);
    std::size_t begun = 0;
    while (unread_.size() >= 5) {
      const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(unread_[at]); };
      const std::size_t length = 4U + byte(0) + (byte(1) << 8U) + (static_cast<std::size_t>(byte(2)) << 16U);
      if (unread_.size() < length) break;
      constexpr unsigned char close_statement = 0x19;
      if (byte(3) == 0 && byte(4) != close_statement) ++begun;
      unread_.erase(0, length);
    }
    return begun;
  }

 private:
  std::string unread_;
};

}  // namespace dlock::test::DLOCK_DIALECT
