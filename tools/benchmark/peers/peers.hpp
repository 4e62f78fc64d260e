// What each database's peers offer to the list of them.
#pragma once

#include "raw_peer.hpp"
#include "types/url.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace bench {

// Which peer, and where.
struct PeerOf {
  std::string_view url;
  const dlock::Url& parsed;
  const RawTable& table;
  std::string_view word;
  std::string_view lock_sql;  // the library's own statements, which "raw" sends
};

struct Peers {
  std::span<const std::string_view> words;
  std::unique_ptr<RawPeer> (*make)(const PeerOf& of);
};

}  // namespace bench
