// Where requests begin in MySQL's protocol, and how one of several statements is altered on its way.
#pragma once

#include "support/test_database.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::test::mysql {

// The length of the packet that these bytes begin with, with its header; 0: they are too few to tell.
inline std::size_t packet_length(std::string_view bytes) {
  if (bytes.size() < 4) return 0;
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])); };
  return 4 + byte(0) + (byte(1) << 8U) + (byte(2) << 16U);
}

// Counts packets with the number 0: each begins a command. Closing a statement is one without an answer.
class Counter final : public RequestCounter {
 public:
  std::size_t feed(std::string_view sent) override {
    unread_.append(sent);
    std::size_t begun = 0;
    while (unread_.size() >= 5) {
      const std::size_t length = packet_length(unread_);
      if (unread_.size() < length) break;
      constexpr char close_statement = 0x19;
      if (unread_[3] == 0 && unread_[4] != close_statement) ++begun;
      unread_.erase(0, length);
    }
    return begun;
  }

 private:
  std::string unread_;
};

// Writes a ROLLBACK into the text. Texts of the engine have no semicolon but between statements: what it writes into
// them is numbers and hexadecimal digits.
class Rollback final : public Undoer {
 public:
  std::string feed(std::string_view sent, Order& order) override {
    unsent_.append(sent);
    if (!order.gap) return std::exchange(unsent_, {});
    std::string instead;
    for (auto length = packet_length(unsent_); length > 0 && unsent_.size() >= length;
         length = packet_length(unsent_)) {
      std::string packet = unsent_.substr(0, length);
      unsent_.erase(0, length);
      undo_in(packet, order);
      instead += packet;
    }
    return instead;
  }

 private:
  static void undo_in(std::string& packet, Order& order) {
    constexpr std::string_view begin = "START TRANSACTION;", commit = "COMMIT;", rollback = " ROLLBACK;";
    constexpr char query = 0x03;
    if (!order.gap || packet.size() < 5 || packet[3] != 0 || packet[4] != query) return;
    const auto from = packet.find(begin), end = packet.find(commit);
    if (from == std::string::npos || end == std::string::npos || end < from) return;
    std::vector<std::size_t> places;
    for (auto at = packet.find(';', from); at < end; at = packet.find(';', at + 1)) places.push_back(at + 1);
    order.gaps = places.size();
    packet.insert(places[std::min(*std::exchange(order.gap, std::nullopt), places.size() - 1)], rollback);
    const auto payload = packet.size() - 4;
    for (std::size_t byte = 0; byte < 3; ++byte) packet[byte] = static_cast<char>((payload >> (8 * byte)) & 0xffU);
  }

  std::string unsent_;
};

// Whether there is a packet with the number 0 in it that has a statement prepared.
inline bool prepares(std::string_view sent) {
  constexpr char prepare_statement = 0x16;
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  for (std::size_t at = 0; at + 5 < sent.size(); ++at)
    if (sent[at + 2] == 0 && sent[at + 3] == 0 && sent[at + 4] == prepare_statement && letter(sent[at + 5]))
      return true;
  return false;
}

}  // namespace dlock::test::mysql
