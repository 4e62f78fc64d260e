// This file knows what a program may change before a connection is opened.
#pragma once

#include <optional>
#include <string>

namespace dlock {
inline namespace v0 {

// What one connect goes by. User and password replace those of the URL where they are set, and are taken as they are:
// nothing in them is percent-encoded.
struct ConnectSettings {
  std::string url{};  // the one that the engine was given
  std::optional<std::string> user{}, password{};
};

}  // namespace v0
}  // namespace dlock
