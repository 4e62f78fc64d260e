// Where requests begin in PostgreSQL's protocol.
#pragma once

#include "support/test_database.hpp"

#include <algorithm>
#include <string>

namespace dlock::test::postgresql {

// Counts what makes the server answer: Sync and simple Query messages. What comes before the first answer of the server
// (requests for encryption, the start-up message) has no type byte and is no request.
class Counter final : public RequestCounter {
 public:
  std::size_t feed(std::string_view sent) override {
    unread_.append(sent);
    std::size_t begun = 0;
    for (;;) {
      const std::size_t typed = started_ ? 1 : 0;
      if (unread_.size() < typed + 4) return begun;
      const std::size_t length = typed + number(typed);
      if (unread_.size() < length) return begun;
      if (started_) {
        if (unread_.front() == 'S' || unread_.front() == 'Q') ++begun;
      } else {
        started_ = number(4) >> 16 == 3;  // protocol 3.x: the start-up message; else a request for encryption
      }
      unread_.erase(0, length);
    }
  }

 private:
  std::size_t number(std::size_t at) const {
    std::size_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(unread_.at(i));
    return value;
  }
  std::string unread_;
  bool started_ = false;
};

// Whether there is a Parse message in it that gives its statement a name.
inline bool prepares(std::string_view sent) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  for (std::size_t at = 0; at + 6 < sent.size(); ++at)
    if (sent[at] == 'P' && sent[at + 1] == 0 && sent[at + 2] == 0 && letter(sent[at + 5]))
      if (const auto end = sent.find('\0', at + 5); end != std::string_view::npos && end < at + 5 + 64) return true;
  return false;
}

}  // namespace dlock::test::postgresql
